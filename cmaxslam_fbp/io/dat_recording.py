"""A recording of decoded events of Prophesee's: a DAT file, eight bytes an event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.decoding import decode_blocks, read_words
from cmaxslam_fbp.io.raw_recording import read_header
from cmaxslam_fbp.io.recording import Recording

_EVENT_TYPES = (0x00, 0x0C)  # of two dimensions, of change detection
_EVENT_BYTES = 8


class DatRecording(Recording):
    """Events as `% key value` lines, a byte each for type and size, then microseconds (32 bits) and place (32 bits)."""

    description = "a Prophesee DAT file"
    endings = (".dat",)

    def _examine(self) -> None:
        self._header, start = read_header(self.path)
        with self.path.open("rb") as file:
            file.seek(start)
            kind = file.read(2)
        self._data_start = start + 2
        self._version = self._header.get("version", "2")
        if self._version not in ("1", "2"):
            raise RecordingError(f"{self.path} is a DAT file of version {self._version[:20]}; 1 and 2 are read")
        if len(kind) < 2 or kind[0] not in _EVENT_TYPES or kind[1] != _EVENT_BYTES:
            what = f"its type of events is {kind[0]} of {kind[1]} bytes" if len(kind) == 2 else "it ends in its header"
            raise RecordingError(f"{self.path} is no DAT file of brightness changes: {what}, not 0 or 12 of 8 bytes")

    def _own_sensor_size(self) -> SensorSize | None:
        sides = f"{self._header.get('width')}x{self._header.get('height')}"
        return SensorSize.from_text(sides) or SensorSize.from_text(self._header.get("geometry", ""))

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the number of events."""
        return [("events", f"DAT {self._version}", (self.path.stat().st_size - self._data_start) // _EVENT_BYTES)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io import decoding_kernels as kernels

        state = np.zeros(kernels.STATE_SIZE, np.int64)
        x_bits, y_bits = (9, 8) if self._version == "1" else (14, 14)  # that of 1 is of the ATIS
        state[[kernels.NOW_US, kernels.X_BITS, kernels.Y_BITS]] = -1, x_bits, y_bits
        return decode_blocks(read_words(self.path, self._data_start, ("<u4", 2)), kernels.decode_dat, state)
