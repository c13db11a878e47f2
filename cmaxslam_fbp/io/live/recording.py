"""A stream of events as a recording that can be read once, while it comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.live.reader import LiveReader
from cmaxslam_fbp.io.raw_recording import LONGEST_HEADER, RawFormat, parse_header
from cmaxslam_fbp.io.recording import Recording

_NAME = "standard input"
_EXPECTED = "expected is the header of a Prophesee RAW stream or of packed events, '% format ...' (docs/formats.md)"


class LiveRecording(Recording):
    """Events from a file descriptor: a header, then EVT words of a Prophesee camera, or packed events.

    Parameters
    ----------
    descriptor : of the open file
    options : what the user says about it
    """

    description: ClassVar[str] = "a stream (EVT 3.0 or packed events) on the standard input"
    longest_disorder_ns: ClassVar[int] = 10_000_000  # sorted is at once what is late by no more than this

    def __init__(self, descriptor: int, options: RecordingConfig | None = None) -> None:
        super().__init__(Path(_NAME), options)
        if os.isatty(descriptor):
            raise RecordingError(f"{_NAME} is a terminal: pipe events into it, as in 'driver | cmaxslam-fbp run -'")
        header, rest = _read_header(descriptor)
        self._format = RawFormat(header, _NAME)
        self.live = LiveReader(descriptor, rest, self._format)

    def _own_sensor_size(self) -> SensorSize | None:
        return self._format.sensor_size()

    def _own_calibration(self) -> Camera | None:
        return self._format.camera()

    def origin(self) -> tuple[str, str | None]:
        """Return the name; the bytes are gone."""
        return _NAME, None

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        assert self.live is not None
        events_before = 0
        for events in self.live.batches():
            yield Piece(events, f"the events after the first {events_before:,} of {_NAME}")
            events_before += len(events)


def _read_header(descriptor: int) -> tuple[dict[str, str], bytes]:
    """Read a stream up to the end of its header; return the header's values, and the bytes that came behind it."""
    head = b""
    while True:
        block = os.read(descriptor, LONGEST_HEADER)
        head += block
        values, at, is_certain = parse_header(head)
        if is_certain or not block or len(head) > LONGEST_HEADER:
            break
    if not head:
        raise RecordingError(f"{_NAME} is empty: its sender has ended before it sent anything")
    if not values:
        raise RecordingError(f"{_NAME} starts with {head[:12]!r}; {_EXPECTED}")
    return values, head[at:]
