"""Streams: what arrives through a pipe is what was sent, in whatever pieces; and what happens when it is too much."""

import os
import threading

import event_words
import numpy as np
import pytest

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.live import thinning
from cmaxslam_fbp.io.live.reader import Arrivals, LiveReader
from cmaxslam_fbp.io.live.recording import LiveRecording
from cmaxslam_fbp.io.live.thinning import Thinning
from cmaxslam_fbp.io.packed_recording import pack, packed_header, write_packed
from cmaxslam_fbp.io.raw_recording import RawFormat

EVT3 = b"% evt 3.0\n% format EVT3;height=720;width=1280\n% end\n"
SIZE = SensorSize(240, 180)
CAMERA = Camera(240, 180, 199.1, 198.8, 132.2, 110.7, (-0.368, 0.151, -0.0003, -0.0008, 0.0), "plumb_bob")


@pytest.fixture
def send():
    """Return the recording of a pipe that a thread writes pieces into."""
    descriptors = []

    def start(*pieces, **options):
        reading, writing = os.pipe()
        descriptors.append(reading)

        def write():
            with open(writing, "wb", buffering=0) as file:
                for piece in pieces:
                    file.write(piece)

        threading.Thread(target=write, daemon=True).start()
        return LiveRecording(reading, RecordingConfig(**options))

    yield start
    for descriptor in descriptors:
        os.close(descriptor)


def received(recording):
    return Events.concatenate(recording.chunks())


def in_pieces(data, seed=0):
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(data), 200)).tolist()
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if end > start]


def test_packed_events_arrive_as_they_were_sent_in_pieces_of_any_size(send, make_events, assert_same_events):
    events = make_events(20_000)
    recording = send(*in_pieces(packed_header(SIZE, CAMERA) + pack(events)))
    assert_same_events(received(recording), events)
    assert recording.sensor_size == SIZE
    assert recording.camera == CAMERA
    assert recording.live.describe() == []


def test_evt3_words_arrive_as_they_were_sent(send, assert_same_events):
    rows = event_words.neighbours(np.random.default_rng(1), 5000, duration_us=60_000)
    t, x, y, p = np.array(rows, np.int64).reshape(-1, 4).T
    recording = send(*in_pieces(EVT3 + event_words.evt3(rows, vectors=True)))
    assert recording.sensor_size == (1280, 720)
    expected = Events(1000 * t, x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))
    assert_same_events(received(recording), expected)


def test_a_stream_that_ends_within_an_event_gives_all_before_it_and_says_so(send, make_events, assert_same_events):
    events = make_events(1000)
    recording = send(packed_header(SIZE, CAMERA) + pack(events)[:-5])
    assert_same_events(received(recording), events[:-1])
    assert recording.live.describe() == ["the stream ended within an event: its sender was stopped there"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "standard input is empty: its sender has ended before it sent anything"),
        (b"\x00\x01garbage\n\xff" * 9, "standard input starts with .* expected is the header"),
        (b"% hello\n% end\n", "has the encoding of no name; EVT2, EVT21, EVT3, packed are read"),
        (b"% format EVT4;width=9;height=9\n% end\n", "has the encoding EVT4"),
    ],
)
def test_what_is_no_stream_is_one_line(send, data, words):
    with pytest.raises(RecordingError, match=words):
        send(data)


def test_a_stream_without_events_or_without_a_size_is_one_line(send):
    with pytest.raises(RecordingError, match="standard input has no events on its sensor"):
        received(send(packed_header(SIZE, CAMERA)))
    with pytest.raises(RecordingError, match="standard input does not tell the sensor's size: give it with"):
        received(send(b"% format packed\n% end\n"))
    assert send(b"% format packed\n% end\n", sensor_size=(320, 240)).sensor_size == (320, 240)


def test_garbage_behind_a_header_is_one_line(send):
    noise = np.random.default_rng(0).integers(0, 256, 130_000, np.uint8).tobytes()
    with pytest.raises(RecordingError, match=r"time jumps back by .* of the events after the first"):
        received(send(packed_header(SIZE, CAMERA) + noise))


def test_a_terminal_is_refused():
    main, terminal = os.openpty()
    with pytest.raises(RecordingError, match="standard input is a terminal: pipe events into it"):
        LiveRecording(terminal)
    os.close(main)
    os.close(terminal)


def test_a_duration_ends_the_reading(send, make_events, assert_same_events):
    events = make_events(40_000, duration_ns=400_000_000)
    recording = send(packed_header(SIZE, CAMERA) + pack(events))
    got = Events.concatenate(recording.chunks(duration_s=0.1))
    assert_same_events(got, events.between(int(events.t_ns[0]), int(events.t_ns[0]) + 100_000_000))


def test_a_stream_is_ended_while_it_is_waited_for(make_events):
    reading, writing = os.pipe()
    os.write(writing, packed_header(SIZE, CAMERA) + pack(make_events(500)))
    recording = LiveRecording(reading)
    threading.Timer(0.3, recording.live.stop).start()  # its sender sends nothing more, and does not go
    assert len(received(recording)) == 500
    os.close(reading)
    os.close(writing)


def test_a_stream_that_is_not_worked_on_is_thinned_and_stays_in_bounds(make_events, monkeypatch):
    monkeypatch.setattr(thinning, "_MOST_WAITING", 5000)
    events = make_events(30_000, duration_ns=30_000_000_000)
    # The clock is that of the stamps: every piece of a hundred events comes a tenth of a second after the one before.
    now_s = [0.0]
    reader = LiveReader(0, b"", RawFormat({"format": "packed"}, "test"), clock=lambda: now_s[0])
    for first in range(0, 30_000, 100):
        piece = events[first : first + 100]
        now_s[0] = (int(piece.t_ns[-1]) - int(events.t_ns[0])) * 1e-9
        reader._take(pack(piece))
    figures = reader.figures()
    assert (figures.events_read, figures.largest_step) == (30_000, 1024)
    assert [step for _, step in figures.decisions] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert reader._waiting + figures.events_left_out == 30_000
    assert reader._waiting < 2000
    assert "the work could not keep up with the stream" in reader.describe()[0]


def test_a_stream_that_is_faster_than_its_stamps_waits_and_loses_nothing(send, make_events, assert_same_events):
    events = make_events(1_000_000, duration_ns=100_000_000_000)
    recording = send(packed_header(SIZE, CAMERA), pack(events))
    assert_same_events(received(recording), events)
    assert recording.live.figures().events_left_out == 0


def test_what_is_kept_depends_on_the_decisions_alone(make_events):
    events = make_events(10_000)

    def kept(cuts):
        work, pieces = Thinning(), []
        for start, end in zip([0, *cuts], [*cuts, 10_000], strict=True):
            # From event 4000 on the work is 0.6 s behind.
            pieces.append(work.thin(events[start:end], start / 1000, 0.6 if start >= 4000 else 0.0, 0))
        return Events.concatenate(pieces)

    np.testing.assert_array_equal(kept([4000]).t_ns, np.r_[events.t_ns[:4000], events.t_ns[4000::4]])
    np.testing.assert_array_equal(kept([300, 4000, 4001, 4007, 9000]).t_ns, kept([4000]).t_ns)


def test_latencies_are_from_the_arrival_to_the_pose():
    arrivals = Arrivals()
    assert arrivals.latency() is None
    for number in range(101):
        arrivals.add(1000 * number, 0.01 * number)
    arrivals.settle(50_000, 2.0)  # those before: 0 to 49 at 2 s, the others at 3 s
    arrivals.settle(10**9, 3.0)
    expected = np.r_[2.0 - 0.01 * np.arange(50), 3.0 - 0.01 * np.arange(50, 101)]
    latency = arrivals.latency()
    assert latency.median_s == pytest.approx(np.median(expected))
    assert latency.percentile_95_s == pytest.approx(np.quantile(expected, 0.95))
    assert latency.largest_s == pytest.approx(2.5)


def test_a_file_of_packed_events_is_read_back(tmp_path, make_events, assert_same_events):
    source = Recording.from_events(make_events(5000), camera=CAMERA)
    source.convert(tmp_path / "a.packed")
    (tmp_path / "a.packed").rename(tmp_path / "kept.raw")  # it is known by its header, too
    recording = open_recording(tmp_path / "kept.raw")
    assert_same_events(received(recording), received(source))
    assert recording.camera == CAMERA
    with (tmp_path / "b.packed").open("wb") as file:
        assert write_packed(source.chunks(), SIZE, CAMERA, file, pace=10.0) == 5000
    assert (tmp_path / "b.packed").read_bytes() == (tmp_path / "kept.raw").read_bytes()


@pytest.mark.parametrize("command", ["info", "velocity"])
def test_other_commands_do_not_read_the_standard_input(run, command):
    assert "is read by 'cmaxslam-fbp run -' alone" in run(command, "-", code=1).stderr
