"""Event packets of ROS bags: against words that are made one by one, and against the sums that their makers publish."""

import event_words
import numpy as np
import pytest
from event_words import to_events

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.rosbag.event_packets import PacketDecoder, parse_packet
from cmaxslam_fbp.io.rosbag.ros_bag import RosBag

PACKET, OLD = "event_camera_msgs/msg/EventPacket", "event_array_msgs/msg/EventArray"
ENCODINGS = ("evt3", "libcaer", "libcaer_cmp", "mono")
STAMP_NS = 1_700_000_000_000_000_000


def moved(events, first_ns):
    return Events(events.t_ns - events.t_ns[0] + first_ns, events.x, events.y, events.p)


def encode(encoding, rows, **options):
    return getattr(event_words, encoding)(rows, **({"vectors": True} if encoding == "evt3" else {}), **options)


@pytest.mark.parametrize("ros", [1, 2])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("frame", ["", "camera"])
def test_every_encoding_is_decoded_from_every_bag(
    tmp_path, write_bag, packet_message, ros, encoding, frame, assert_same_events
):
    rows = event_words.neighbours(np.random.default_rng(3), 4000, start_us=700_000_000)
    messages = []
    for first in range(0, len(rows), 700):
        part = rows[first : first + 700]
        base = {} if encoding == "evt3" else {"base_us": part[0][0]}
        data = encode(encoding, part, **base)
        time_base = 1000 * part[0][0] if base else 77
        messages.append(packet_message(encoding, data, ros=ros, stamp_ns=STAMP_NS, time_base=time_base, frame=frame))
    path = write_bag(tmp_path / "a.bag", {"/cam/events": (PACKET if ros == 1 else OLD, messages)}, ros=ros)
    recording = open_recording(path)
    assert recording.sensor_size == (1280, 720)
    expected = to_events(rows)
    if encoding in ("evt3", "mono"):  # of the sensor's clock
        expected = moved(expected, STAMP_NS)
    assert_same_events(Events.concatenate(recording.chunks()), expected)


def decode(encoding, packets, message=None, ros=False):
    """Decode payloads, or (payload, time base)."""
    decoder, found = PacketDecoder(), []
    for packet in packets:
        data, base = packet if isinstance(packet, tuple) else (packet, 0)
        parsed = parse_packet(serialised(encoding, data, base), True)
        found += list(decoder.decode(parsed))
    return Events.concatenate([*found, decoder.rest()])


def serialised(encoding, data, base=0, *, big=0):
    """Return the bytes of a ROS 1 message without a stamp: times stay those of the sensor."""
    import struct

    name = encoding.encode()
    front = struct.pack("<IIII", 1, 0, 0, 0) + struct.pack("<IIQQ", 720, 1280, 1, base)
    return front + struct.pack("<I", len(name)) + name + struct.pack("<BI", big, len(data)) + data


def test_what_one_evt3_packet_leaves_open_the_next_goes_on_with(assert_same_events):
    rows = event_words.neighbours(np.random.default_rng(5), 3000)
    data = encode("evt3", rows)
    for size in (2, 4, 6, 1000):  # words of two bytes
        packets = [data[i : i + size] for i in range(0, len(data), size)]
        assert_same_events(decode("evt3", packets), to_events(rows))


def test_evt3_stamps_go_on_over_their_end_and_may_step_back_a_little(assert_same_events):
    span = 1 << 24
    stamps = (5, span - 9000, span - 1, span + 3, 2 * span - 400_000, 2 * span + 70, 3 * span - 99_000, 3 * span)
    rows = [(t, t % 1000, 3, 1) for t in stamps]
    assert_same_events(decode("evt3", [encode("evt3", rows)]), to_events(rows))
    back = [(t, 4, 3, 1) for t in (20_000, 40_000, 31_000, 50_000, span, span - 8000, span + 1)]
    assert_same_events(decode("evt3", [encode("evt3", back)]), to_events(back))


def test_padding_triggers_and_other_messages_are_no_events(assert_same_events):
    import struct

    rows = [(100, 5, 6, 1), (5000, 7, 8, 0)]
    noise = struct.pack("<7H", 0x9999, 0xA001, 0xE014, 0x7004, 0xF123, 0x9999, 0x9999)
    first, second = encode("evt3", rows[:1]), encode("evt3", rows[1:])
    assert_same_events(decode("evt3", [noise + first + noise, noise, second + noise]), to_events(rows))


def test_evt3_events_before_the_first_whole_stamp_are_left_out(assert_same_events):
    import struct

    early = struct.pack("<5H", 0x0005, 0x2001, 0x6003, 0x2002, 0x4FFF)
    rows = [(8192 + 5, 5, 6, 1)]
    assert_same_events(decode("evt3", [early, encode("evt3", rows)]), to_events(rows))


def test_libcaer_stamps_wrap_within_a_packet(assert_same_events):
    base_us = 0
    rows = [((1 << 31) + d, 9, 8, 1) for d in (-50, -2, -7, 4, 90)]
    packets = [(event_words.libcaer(rows), base_us)]
    assert_same_events(decode("libcaer", packets), to_events(rows))


def test_words_of_libcaer_cmp_are_those_that_its_author_describes(assert_same_events):
    """Bytes by hand, after the words in the header file of the codec's author; a packet begins at its time base.

    Time high 2, low 5; column 345; row 259 brighter; rows from 8 on darker: 8 and 15, and of the next eight 16; low 6;
    row 0 darker. In the next packet high and low are zero again, and the column stays.
    """
    packets = [bytes.fromhex(words) for words in ("0200 0510 5921 0339 0840 8150 0150 0610 0030", "0710 0130")]
    rows = [(8197, 345, 259, 1), (8197, 345, 8, 0), (8197, 345, 15, 0), (8197, 345, 16, 0), (8198, 345, 0, 0)]
    expected = to_events([(t + 50, *rest) for t, *rest in rows] + [(20_007, 345, 1, 0)])
    assert_same_events(decode("libcaer_cmp", [(packets[0], 50_000), (packets[1], 20_000_000)]), expected)


def test_chunks_join_small_packets_and_part_large_ones(monkeypatch, assert_same_events):
    monkeypatch.setattr("cmaxslam_fbp.io.decoding.EVENTS_PER_CHUNK", 100)
    rows = event_words.neighbours(np.random.default_rng(7), 2000)
    for encoding in ENCODINGS:
        data = encode(encoding, rows)
        assert_same_events(decode(encoding, [data]), to_events(rows))


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        # https://github.com/ros-event-camera/event_camera_codecs/blob/master/test/decoder_test.cpp
        ("evt3", (1222326831810000, 42078718, 31656267, 41439)),
        ("libcaer", (15762826572202229126, 111651612, 82801007, 181908)),
        ("mono", (4950000, 34450, 26450, 50)),
    ],
)
def test_the_published_sums_come_out(real_data, name, sums):
    path = real_data / "formats" / f"event_packet_{name}"
    recording = open_recording(path)
    decoder, chunks = PacketDecoder(), []
    with RosBag(path) as bag:
        for _, data in bag.messages(recording.events_topic):
            packet = parse_packet(data, False)
            chunks += list(decoder.decode(packet))
    decoder._offset_ns = 0  # the sensor's own clock, as the published sums have it
    events = Events.concatenate([*chunks, decoder.rest()])
    found = (int(events.t_ns.astype(np.uint64).sum()), *(int(c.sum()) for c in (events.x, events.y, events.p)))
    if name == "libcaer":  # more than a chunk; its stamps are those of the messages anyway
        assert len(chunks) > 0
    assert found == sums
    assert len(Events.concatenate(recording.chunks())) == len(events)


def test_a_topic_of_triggers_is_no_candidate(tmp_path, write_bag, packet_message):
    data = encode("evt3", [(100, 5, 6, 1)])
    topics = {
        "/cam/triggers": (PACKET, [packet_message("trigger", b"\0" * 8)]),
        "/cam/events": (
            PACKET,
            [packet_message("trigger", b"") | {"encoding": "evt3", "events": np.frombuffer(data, "u1")}],
        ),
    }
    recording = open_recording(write_bag(tmp_path / "a.bag", topics))
    assert recording.events_topic == "/cam/events"
    assert len(Events.concatenate(recording.chunks())) == 1
    topics["/other/events"] = topics["/cam/events"]
    with pytest.raises(RecordingError, match="--events-topic: /cam/events, /other/events"):
        open_recording(write_bag(tmp_path / "b.bag", topics))


def test_the_clock_of_poses_is_that_of_the_events(tmp_path, write_bag, packet_message, pose_message):
    rows = event_words.neighbours(np.random.default_rng(3), 500)
    poses = [pose_message(STAMP_NS + i * 10_000_000, (0, 0, 0, 1)) for i in range(3)]
    topics = {
        "/events": (PACKET, [packet_message("evt3", encode("evt3", rows), stamp_ns=STAMP_NS)]),
        "/pose": ("geometry_msgs/msg/PoseStamped", poses),
    }
    recording = open_recording(write_bag(tmp_path / "a.bag", topics))
    assert recording.start_ns == recording.ground_truth.start_ns == STAMP_NS


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (serialised("evt4", b"\0\0"), "encoding 'evt4' is not known; evt3, libcaer"),
        (serialised("evt3", b"\0\0\0"), "3 bytes of events end within a word of 2: the message is cut"),
        (serialised("mono", b"\0" * 8, big=1), "big-endian"),
        (serialised("mono", b"\0" * 8, (1 << 64) - 1), "time base is 18446744073709551615 ns, which no clock shows"),
        (serialised("evt3", b"\0" * 8)[:-3], "has a part that ends at byte"),
        (serialised("evt3", b"")[:30], "too short for its fields"),
        (b"", "too short for its fields"),
    ],
)
def test_a_damaged_message_is_named(tmp_path, data, complaint):
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg("uint8 x\n", PACKET))  # its definition in the bag is not looked at
    with Writer(tmp_path / "a.bag") as writer:
        connection = writer.add_connection("/cam/events", PACKET, typestore=store)
        writer.write(connection, 0, serialised("evt3", event_words.evt3([(5, 6, 7, 1)])))
        writer.write(connection, 1, data)
    with pytest.raises(RecordingError, match=rf"message 1 on /cam/events of .*a\.bag: .*{complaint}"):
        Events.concatenate(open_recording(tmp_path / "a.bag").chunks())
