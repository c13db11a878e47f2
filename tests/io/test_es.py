"""Event Stream files of bytes that are packed here by hand (those of faery are in test_prophesee)."""

import struct

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording

HEIGHT = 240


def header(kind=1, version=b"\x02\x00\x00"):
    return b"Event Stream" + version + bytes([kind]) + struct.pack("<HH", 304, HEIGHT)


def item(first, x, y):
    return bytes([first]) + struct.pack("<HH", x, HEIGHT - 1 - y)


@pytest.fixture
def read(tmp_path):
    def read_bytes(data):
        (tmp_path / "a.es").write_bytes(data)
        return Events.concatenate(open_recording(tmp_path / "a.es").chunks())

    return read_bytes


def test_time_adds_up_and_overflows(read):
    data = item(5 << 1 | 1, 1, 2) + b"\xff\xff" + item(0, 3, 4) + b"\xfe" * 5 + item(126 << 1, 5, 6)
    events = read(header() + data)
    assert (events.t_ns // 1000).tolist() == [5, 5 + 254, 5 + 254 + 126]
    assert (events.x.tolist(), events.y.tolist(), events.p.tolist()) == ([1, 3, 5], [2, 4, 6], [1, 0, 0])


def test_exposures_of_an_atis_are_passed_over(read):
    data = item(1 << 2 | 2, 1, 2) + b"\xfe" + item(1 << 2 | 1, 9, 9) + item(1 << 2 | 3, 9, 9) + item(1 << 2, 3, 4)
    events = read(header(2) + data)
    assert (events.t_ns // 1000).tolist() == [1, 1 + 2 * 63 + 3]
    assert (events.x.tolist(), events.y.tolist(), events.p.tolist()) == ([1, 3], [2, 4], [1, 0])


@pytest.mark.parametrize("block", [1, 2, 5, 7, 64])
def test_events_go_on_over_the_borders_of_blocks(read, block, monkeypatch):
    monkeypatch.setattr("cmaxslam_fbp.io.es_recording._BLOCK_BYTES", block)
    monkeypatch.setattr("cmaxslam_fbp.io.decoding.EVENTS_PER_CHUNK", 7)
    draw = np.random.default_rng(0)
    steps, x, y = draw.integers(0, 127, 300), draw.integers(0, 304, 300), draw.integers(0, HEIGHT, 300)
    data = b"".join(item(s << 1, *place) for s, *place in zip(steps.tolist(), x.tolist(), y.tolist(), strict=True))
    events = read(header() + data)
    np.testing.assert_array_equal(events.t_ns // 1000, np.cumsum(steps))
    np.testing.assert_array_equal(events.x, x)
    np.testing.assert_array_equal(events.y, y)


def test_what_is_wrong_is_one_line_with_its_place(read):
    with pytest.raises(RecordingError, match="ends within an event, at byte 25: the file is cut"):
        read(header() + item(2, 1, 1) + item(2, 2, 2)[:-1])
    with pytest.raises(RecordingError, match=r"of version 2\.0\.0 and type 4; version 2 of a DVS"):
        read(header(4))
    with pytest.raises(RecordingError, match=r"of version 1\.0\.0 and type 1"):
        read(header(version=b"\x01\x00\x00"))
    with pytest.raises(RecordingError, match="does not start as an Event Stream file does"):
        read(header()[:-1])
    with pytest.raises(RecordingError, match="has no events"):
        read(header())


def test_the_events_before_a_cut_come_first(tmp_path):
    (tmp_path / "a.es").write_bytes(header() + item(2, 1, 1) + item(2, 2, 2)[:-1])
    pieces = open_recording(tmp_path / "a.es")._pieces(None)
    assert len(next(pieces).events) == 1
    with pytest.raises(RecordingError, match="ends within an event"):
        next(pieces)
