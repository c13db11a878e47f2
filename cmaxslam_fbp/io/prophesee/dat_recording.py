"""A recording of decoded events of Prophesee's: a DAT file, eight bytes an event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.event_room import EventRoom
from cmaxslam_fbp.io.prophesee.header import read_header, size_of
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.word_blocks import read_words

_EVENT_TYPES = (0x00, 0x0C)  # of two dimensions, of change detection
_EVENT_BYTES = 8


class DatRecording(Recording):
    """Events as `% key value` lines, a byte each for type and size, then microseconds (32 bits) and place (32 bits)."""

    description: ClassVar[str] = "a Prophesee DAT file"
    endings: ClassVar[tuple[str, ...]] = (".dat",)

    def __init__(self, path: Path, options: RecordingConfig | None = None) -> None:
        super().__init__(path, options)
        self._header, start = read_header(path)
        with path.open("rb") as file:
            file.seek(start)
            kind = file.read(2)
        self._data_start = start + 2
        self._version = self._header.get("version", "2")
        if self._version not in ("1", "2"):
            raise RecordingError(f"{path} is a DAT file of version {self._version[:20]}; 1 and 2 are read")
        if len(kind) < 2 or kind[0] not in _EVENT_TYPES or kind[1] != _EVENT_BYTES:
            what = f"its type of events is {kind[0]} of {kind[1]} bytes" if len(kind) == 2 else "it ends in its header"
            raise RecordingError(f"{path} is no DAT file of brightness changes: {what}, not 0 or 12 of 8 bytes")

    def _own_sensor_size(self) -> SensorSize | None:
        width, _, height = self._header.get("geometry", "").partition("x")
        return size_of(self._header.get("width"), self._header.get("height")) or size_of(width, height)

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the number of events."""
        return [("events", f"DAT {self._version}", (self.path.stat().st_size - self._data_start) // _EVENT_BYTES)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io.prophesee import dat_kernels as kernels

        decode = kernels.decode_dat1 if self._version == "1" else kernels.decode_dat2
        room, state = EventRoom(), np.full(1, -1, np.int64)
        place = str(self.path)
        for words, place in read_words(self.path, self._data_start, np.dtype(("<u4", 2))):
            for events in room.fill(decode, words, state):
                yield Piece(events, place)
        yield Piece(room.take(), place)
