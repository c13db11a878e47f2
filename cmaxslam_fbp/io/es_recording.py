"""A recording in an Event Stream file (.es, version 2), of a DVS or an ATIS."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.decoding import Block, decode_blocks
from cmaxslam_fbp.io.recording import Recording

_HEADER_BYTES = 20  # magic, version, type, width and height
_BLOCK_BYTES = 1 << 20
_DVS, _ATIS = 1, 2


class EsRecording(Recording):
    """Events with the time since the one before; rows count from below in the file."""

    description = "an Event Stream file (.es)"
    endings = (".es",)
    first_bytes = b"Event Stream"

    def _examine(self) -> None:
        with self.path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
        if len(head) < _HEADER_BYTES or not head.startswith(self.first_bytes):
            raise RecordingError(f"{self.path} does not start as an Event Stream file does: 'Event Stream' and 8 bytes")
        *version, self._type = head[12:16]
        if version[0] != 2 or self._type not in (_DVS, _ATIS):
            raise RecordingError(
                f"{self.path} is an Event Stream file of version {'.'.join(map(str, version))} and type {self._type}; "
                "version 2 of a DVS (1) or an ATIS (2) is read"
            )
        self._size = SensorSize(int.from_bytes(head[16:18], "little"), int.from_bytes(head[18:20], "little"))

    def _own_sensor_size(self) -> SensorSize | None:
        return self._size

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the type of the stream and its number of bytes."""
        return [
            ("DVS" if self._type == _DVS else "ATIS", "Event Stream bytes", self.path.stat().st_size - _HEADER_BYTES)
        ]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io import decoding_kernels as kernels

        state = np.zeros(kernels.STATE_SIZE, np.int64)
        state[[kernels.LAST_ROW, kernels.FLAG_BITS]] = self._size.height - 1, 1 if self._type == _DVS else 2
        yield from decode_blocks(self._blocks(state), kernels.decode_es, state)
        if left_over := int(state[kernels.LEFT_OVER]):
            at = self.path.stat().st_size - left_over
            raise RecordingError(f"{self.path} ends within an event, at byte {at}: the file is cut")

    def _blocks(self, state: IntArray) -> Iterator[Block]:
        """Yield the bytes, an event that goes on in the next block with that one."""
        from cmaxslam_fbp.io.decoding_kernels import LEFT_OVER

        at, left_over = _HEADER_BYTES, b""
        with self.path.open("rb") as file:
            file.seek(at)
            while block := file.read(_BLOCK_BYTES):
                data = left_over + block
                place = f"bytes {at - len(left_over)} to {at + len(block) - 1} of {self.path}"
                yield np.frombuffer(data, np.uint8), place
                left_over = data[len(data) - int(state[LEFT_OVER]) :]
                at += len(block)
