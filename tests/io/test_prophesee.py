"""RAW and DAT files: bytes that are made one by one, and those of faery; read as faery and evt3 read them."""

import struct

import event_words
import numpy as np
import pytest
from event_words import to_events

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording

EVK4 = (
    "% camera_integrator_name Prophesee\n% evt 3.0\n% format EVT3;height=720;width=1280\n% geometry 1280x720\n% end\n"
)


@pytest.fixture
def rows():
    return event_words.neighbours(np.random.default_rng(1), 5000, duration_us=60_000)


@pytest.fixture
def write(tmp_path):
    def write_file(header, data, name="a.raw"):
        (tmp_path / name).write_bytes(header.encode() + data)
        return tmp_path / name

    return write_file


def read(path, **options):
    return Events.concatenate(open_recording(path, **options).chunks())


HEADERS = {
    "evt3": EVK4,
    "evt2": "% evt 2.0\n% geometry 1280x720\n",
    "evt21": "% evt 2.1\n% format EVT21;endianness=little;height=720;width=1280\n% end\n",
    "evt21 legacy": "% format EVT21;height=720;width=1280;endianness=legacy\n% end\n",
    "evt21 unsaid": "% evt 2.1\n% geometry 1280x720\n% end\n",
    "evt21 legacy unsaid": "% evt 2.1\n% geometry 1280x720\n% end\n",
}


def encode(kind, rows):
    encoding, *more = kind.split()
    options = {"legacy": "legacy" in more} if encoding == "evt21" else {"vectors": True} if encoding == "evt3" else {}
    return getattr(event_words, encoding)(rows, **options)


@pytest.mark.parametrize("kind", HEADERS)
def test_every_encoding_is_read(write, rows, kind, assert_same_events):
    path = write(HEADERS[kind], encode(kind, rows))
    recording = open_recording(path)
    assert recording.sensor_size == (1280, 720)
    assert_same_events(Events.concatenate(recording.chunks()), to_events(rows))


def test_big_endian_words_are_read(write, rows, assert_same_events):
    data = np.frombuffer(event_words.evt3(rows), "<u2").astype(">u2").tobytes()
    path = write("% format EVT3;height=720;width=1280;endianness=big\n", data)
    assert_same_events(read(path), to_events(rows))


@pytest.mark.parametrize("kind", ["evt3", "evt2", "evt21"])
def test_blocks_of_any_size_give_the_same_events(write, rows, kind, monkeypatch, assert_same_events):
    monkeypatch.setattr("cmaxslam_fbp.io.decoding.EVENTS_PER_CHUNK", 64)
    assert_same_events(read(write(HEADERS[kind], encode(kind, rows))), to_events(rows))


def test_evt2_stamps_go_on_over_the_end_of_34_bits(write, assert_same_events):
    span = 1 << 34
    rows = [(t, 5, 6, 1) for t in (span - 70, span - 1, span, span - 40, span + 200)]
    expected = to_events(sorted(rows))
    assert_same_events(read(write(HEADERS["evt2"], event_words.evt2(rows))), expected)
    assert_same_events(read(write(HEADERS["evt21"], event_words.evt21(rows))), expected)


def test_triggers_are_passed_over_and_unknown_words_are_said(write):
    trigger, other, unknown = 0xA << 28, 0xE << 28, 0x5 << 28
    data = struct.pack("<3I", trigger, other, unknown) + event_words.evt2([(5, 6, 7, 1)])
    stream = open_recording(write(HEADERS["evt2"], data)).chunks()
    assert len(Events.concatenate(stream)) == 1
    assert stream.defects.describe() == ["words of unknown types were passed over"]


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("% evt 3.0\n% sensor_generation 4.2\n", (1280, 720)),
        ("% evt 3.0\n% generation 3.1\n% end\n", (640, 480)),
        ("% evt 3.0\n% geometry 320x320\n% sensor_generation 4.2\n", (320, 320)),
    ],
)
def test_old_headers_tell_the_size_by_the_sensor(write, header, size):
    assert open_recording(write(header, b"")).sensor_size == size


def test_a_raw_file_is_known_by_its_header(write, rows):
    assert len(read(write(EVK4, event_words.evt3(rows), "download"))) == len(rows)


def test_what_is_wrong_with_a_raw_file_is_one_line(write, rows):
    data = event_words.evt3(rows)
    end = len(EVK4) + len(data) - 2
    with pytest.raises(RecordingError, match=rf"a\.raw ends within a word of 2 bytes, at byte {end}: the file is cut"):
        read(write(EVK4, data[:-1]))
    with pytest.raises(RecordingError, match="has the encoding EVT4; EVT2, EVT21, EVT3, packed are read"):
        open_recording(write("% evt 4.0\n% format EVT4\n", b""))
    with pytest.raises(RecordingError, match="no header with lines of '% key value'"):
        open_recording(write("", data))
    with pytest.raises(RecordingError, match="does not tell the sensor's size: give it with --sensor-size"):
        read(write("% evt 3.0\n", data))
    with pytest.raises(RecordingError, match="no sensor has 99999 x 1 pixels"):
        read(write("% evt 3.0\n% geometry 99999x1\n", data))
    with pytest.raises(RecordingError, match="has no events"):
        read(write(EVK4, b"\0\0" * 50))
    jump = event_words.evt2([(9_000_000, 1, 1, 1), (4_000_000, 1, 1, 1)])
    with pytest.raises(RecordingError, match=r"time jumps back by 5\.000 s at event 1 of bytes \d+ to \d+ of .*a\.raw"):
        read(write(HEADERS["evt2"], jump))


def dat(rows, *, version=2):
    bits = (9, 8) if version == 1 else (14, 14)
    return b"\x0c\x08" + b"".join(
        struct.pack("<II", t & 0xFFFFFFFF, x | y << bits[0] | p << sum(bits)) for t, x, y, p in rows
    )


DAT_HEADER = "% Data file containing CD events.\n% Version {}\n% Date 2023-1-1 12:00:00\n% Height {}\n% Width {}\n"


def test_dat_files_of_both_versions_are_read(write, assert_same_events):
    draw = np.random.default_rng(2)
    start = (1 << 32) - 9000
    rows = event_words.neighbours(draw, 2000, width=304, height=240, start_us=start)
    for version in (1, 2):
        path = write(DAT_HEADER.format(version, 240, 304), dat(rows, version=version), "a.dat")
        assert open_recording(path).sensor_size == (304, 240)
        assert_same_events(read(path), to_events(rows))


def test_what_is_wrong_with_a_dat_file_is_one_line(write):
    header, data = DAT_HEADER.format(2, 240, 304), dat([(5, 6, 7, 1)])
    with pytest.raises(
        RecordingError, match=rf"ends within a word of 8 bytes, at byte {len(header) + 2}: the file is cut"
    ):
        read(write(header, data[:-1], "a.dat"))
    with pytest.raises(RecordingError, match="its type of events is 14 of 8 bytes, not 0 or 12 of 8 bytes"):
        open_recording(write(header, b"\x0e" + data[1:], "a.dat"))
    with pytest.raises(RecordingError, match="it ends in its header"):
        open_recording(write(header, b"", "a.dat"))
    with pytest.raises(RecordingError, match="of version 3; 1 and 2 are read"):
        open_recording(write(DAT_HEADER.format(3, 1, 1), data, "a.dat"))
    with pytest.raises(RecordingError, match=r"time jumps back by 5\.000 s at event 1 of bytes"):
        read(write(header, dat([(9_000_000, 1, 1, 1), (4_000_000, 1, 1, 1)]), "a.dat"))


@pytest.fixture
def faery_events():
    """Random events over several wraps of EVT 3, as faery has them."""
    faery = pytest.importorskip("faery")
    draw = np.random.default_rng(4)
    array = np.zeros(20_000, faery.EVENTS_DTYPE)
    array["t"] = np.sort(draw.integers(0, 60_000_000, len(array)))
    array["x"], array["y"], array["on"] = (draw.integers(0, end, len(array)) for end in (304, 240, 2))
    array["x"][500:900] = np.arange(400) % 30  # side by side
    array["y"][500:900], array["on"][500:900], array["t"][500:900] = 5, 1, array["t"][500]
    return array


@pytest.mark.parametrize(
    ("name", "version"), [("a.raw", "evt2"), ("a.raw", "evt3"), ("a.dat", "dat1"), ("a.dat", "dat2"), ("a.es", None)]
)
def test_what_faery_writes_is_read(tmp_path, faery_events, name, version, assert_same_events):
    import faery

    stream = faery.events_stream_from_array(faery_events, (304, 240))
    stream.to_file(tmp_path / name, version=version, zero_t0=False)
    recording = open_recording(tmp_path / name)
    assert recording.sensor_size == (304, 240)
    expected = to_events(np.column_stack([faery_events[k].astype(np.int64) for k in ("t", "x", "y", "on")]))
    assert_same_events(Events.concatenate(recording.chunks()), expected)


def test_our_words_are_read_as_evt3_and_faery_read_them(write, rows, assert_same_events):
    evt3, faery = pytest.importorskip("evt3"), pytest.importorskip("faery")
    path = write(EVK4, event_words.evt3(rows, vectors=True))
    theirs = evt3.decode_file(str(path))
    ours = read(path)
    np.testing.assert_array_equal(ours.t_ns, 1000 * np.asarray(theirs.timestamp).astype(np.int64))
    for name, column in (("x", theirs.x), ("y", theirs.y), ("p", theirs.polarity)):
        np.testing.assert_array_equal(getattr(ours, name), np.asarray(column), err_msg=name)
    theirs = np.concatenate(list(faery.events_stream_from_file(path)))
    np.testing.assert_array_equal(ours.t_ns // 1000, theirs["t"].astype(np.int64))
    for name, column in (("x", "x"), ("y", "y"), ("p", "on")):
        np.testing.assert_array_equal(getattr(ours, name), theirs[column], err_msg=name)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("evt21", "00000000 02000080 01000080 64004211 02000000 CF02E70F"),
        ("evt21 legacy", "02000080 00000000 64004211 01000080 CF02E70F 02000000"),
    ],
)
def test_words_of_evt21_are_those_of_prophesee_s_description(write, kind, words):
    """Bytes by hand: time high 2; ON, time low 5, columns 64 + 0 and 31, row 100; OFF, 63, column 1248 + 1, row 719."""
    events = read(write(HEADERS[kind], bytes.fromhex(words)))
    assert (events.t_ns // 1000).tolist() == [133, 133, 191]
    assert [column.tolist() for column in (events.x, events.y, events.p)] == [
        [64, 95, 1249],
        [100, 100, 719],
        [1, 1, 0],
    ]
