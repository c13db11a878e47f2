"""Packed events: a header of text, then 13 bytes an event, as ROS 1 has them; as a stream, or kept in a file.

The header is like that of Prophesee's streams, and ends with `% end`:

    % format packed;width=240;height=180
    % intrinsics 199.1 198.8 132.2 110.7
    % distortion plumb_bob -0.368 0.151 -0.0003 -0.0008
    % end

An event is `uint16 x; uint16 y; uint32 seconds; uint32 nanoseconds; uint8 polarity`, all little-endian.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.raw_recording import PACKED, RawRecording, read_header
from cmaxslam_fbp.io.recording import starts_with
from cmaxslam_fbp.io.rosbag.ros_messages import to_ros1
from cmaxslam_fbp.io.writing import EventSource, Sink, WriteEvents
from cmaxslam_fbp.nanoseconds import NS_PER_S

_END_OF_TIME_NS = 2**32 * NS_PER_S
_SLICE_NS = 2_000_000  # of the recording, that a paced writer writes at once


def packed_header(size: SensorSize, camera: Camera | None) -> bytes:
    """Return the header of a stream of packed events."""
    lines = [f"format {PACKED};width={size.width};height={size.height}"]
    if camera is not None:
        lines.append(f"intrinsics {_exactly(camera.fx, camera.fy, camera.cx, camera.cy)}")
        lines.append(f"distortion {camera.distortion_model} {_exactly(*camera.distortion)}")
    return "".join(f"% {line}\n" for line in [*lines, "end"]).encode()


def _exactly(*values: float) -> str:
    return " ".join(repr(float(value)) for value in values)


def pack(events: Events) -> bytes:
    """Return the records of events; stamps that 32 bits of seconds do not hold are an error."""
    if len(events) and not 0 <= int(events.t_ns.min()) <= int(events.t_ns.max()) < _END_OF_TIME_NS:
        raise OutputError("packed events have 32 bits for the seconds, and no sign: these stamps do not fit")
    return to_ros1(events).tobytes()


def write_packed(
    chunks: Iterable[Events],
    size: SensorSize,
    camera: Camera | None,
    file: BinaryIO,
    *,
    pace: float | None = None,
) -> int:
    """Write a stream of packed events; return how many there were.

    With `pace` an event is written when its time has come: 1 is as fast as it was recorded, 2 twice as fast.
    """
    if pace is not None and not 0 < pace <= 1e6:
        raise OutputError(f"the pace of a stream is a positive number, 1 for real time; not {pace}")
    file.write(packed_header(size, camera))
    count, first_ns, began = 0, None, 0.0
    for chunk in chunks:
        for events in [chunk] if pace is None else _slices(chunk):
            if pace is not None:
                if first_ns is None:
                    first_ns, began = int(events.t_ns[0]), time.monotonic()
                due_s = (int(events.t_ns[-1]) - first_ns) / NS_PER_S / pace
                time.sleep(max(began + due_s - time.monotonic(), 0.0))
            file.write(pack(events))
            file.flush()
            count += len(events)
    return count


def _slices(events: Events) -> list[Events]:
    """Cut events where a slice of time ends."""
    if not len(events):
        return []
    numbers = (events.t_ns - events.t_ns[0]) // _SLICE_NS
    ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(events)]
    return [events[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


@contextmanager
def write_packed_file(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Write a file of packed events."""
    with path.open("wb") as file:
        file.write(packed_header(source.sensor_size, source.camera))
        yield lambda events: file.write(pack(events))


class PackedRecording(RawRecording):
    """What `run -` reads, in a file."""

    description = "packed events as of a stream (.packed)"
    endings = (".packed",)
    sinks: ClassVar[Mapping[str, Sink]] = {".packed": write_packed_file}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell it by its ending or its header."""
        if path.suffix in cls.endings:
            return True
        return starts_with(path, b"%") and read_header(path)[0].get("format", "").partition(";")[0] == PACKED

    def _own_calibration(self) -> Camera | None:
        return self._format.camera()
