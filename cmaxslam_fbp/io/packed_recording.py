"""A stream of packed events that is kept in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.packed_events import PACKED, pack, packed_header
from cmaxslam_fbp.io.prophesee.header import read_header
from cmaxslam_fbp.io.prophesee.raw_recording import RawRecording
from cmaxslam_fbp.io.recording import starts_with
from cmaxslam_fbp.io.writing import EventSource, Sink, WriteEvents


@contextmanager
def write_packed_file(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Write a file of packed events."""
    with path.open("wb") as file:
        file.write(packed_header(source.sensor_size, source.camera))
        yield lambda events: file.write(pack(events))


class PackedRecording(RawRecording):
    """What `run -` reads, in a file."""

    description: ClassVar[str] = "packed events as of a stream (.packed)"
    endings: ClassVar[tuple[str, ...]] = (".packed",)
    sinks: ClassVar[Mapping[str, Sink]] = {".packed": write_packed_file}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell it by its ending or its header."""
        if path.suffix in cls.endings:
            return True
        return starts_with(path, b"%") and read_header(path)[0].get("format", "").partition(";")[0] == PACKED

    def _own_calibration(self) -> Camera | None:
        return self._format.camera()
