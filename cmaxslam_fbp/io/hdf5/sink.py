"""Write a recording as HDF5 in the layout of DSEC, which many tools read; what DSEC keeps elsewhere is in it, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.hdf5.file import compression, open_hdf5
from cmaxslam_fbp.io.hdf5.reference import CALIBRATION, GROUND_TRUTH, IMU
from cmaxslam_fbp.io.lens_names import kalibr_values
from cmaxslam_fbp.io.writing import EventSource, WriteEvents

_EVENTS_PER_CHUNK = 1 << 17
_LONGEST_GAP_MS = 100_000_000  # a day
_COLUMNS = {"t": np.int64, "x": np.uint16, "y": np.uint16, "p": np.uint8, "ns": np.uint16}


@contextmanager
def write_hdf5(source: EventSource, path: Path, compression_of_bags: str) -> Iterator[WriteEvents]:
    """Make a file to append events to.

    `/events/{x,y,t,p}`, microseconds from `/t_offset`; `/events/ns` are the nanoseconds beyond them, where there are
    any; `/ms_to_idx` is the first event at or after each millisecond.
    """
    with open_hdf5(path, "w") as file:
        columns = _EventColumns(file)
        yield columns.append
        columns.finish()
        calibration = {"resolution": list(source.sensor_size)}
        if source.camera is not None:
            calibration = kalibr_values(source.camera)
        for name, value in calibration.items():
            file[f"events/{CALIBRATION}/{name}"] = value
        if (poses := source.ground_truth) is not None:
            for name, array in zip(GROUND_TRUTH, (poses.t_ns, poses.quaternions_xyzw, poses.positions_m), strict=True):
                if array is not None:
                    file[name] = array
        if (imu := source.imu) is not None:
            samples = (imu.t_ns, imu.angular_velocity_rad_s, imu.linear_acceleration_m_s2)
            for name, column in zip(IMU, samples, strict=True):
                file[name] = column


class _EventColumns:
    """The columns of the events and their index by milliseconds, which grow by chunks."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._columns = {
            name: file.create_dataset(
                f"events/{name}", (0,), dtype, maxshape=(None,), chunks=(_EVENTS_PER_CHUNK,), **compression()
            )
            for name, dtype in _COLUMNS.items()
        }
        self._has_rest = False
        self._offset_us: int | None = None
        self._index: list[np.ndarray] = []
        self._next_ms = 0
        self._count = 0

    def append(self, events: Events) -> None:
        """Add events, ordered by time."""
        if not len(events):
            return
        t_us, rest_ns = np.divmod(events.t_ns, 1000)
        if self._offset_us is None:
            self._offset_us = int(t_us[0])
        t_us -= self._offset_us
        self._has_rest |= bool(rest_ns.any())
        after = self._count + len(events)
        for name, column in (("t", t_us), ("x", events.x), ("y", events.y), ("p", events.p), ("ns", rest_ns)):
            self._columns[name].resize((after,))
            self._columns[name][self._count : after] = column
        last_ms = int(t_us[-1]) // 1000
        if last_ms - self._next_ms > _LONGEST_GAP_MS:
            raise OutputError(
                f"a gap of {(last_ms - self._next_ms) / 1000:.0f} s is too long for DSEC's index; cut there"
            )
        due_ms = np.arange(self._next_ms, last_ms + 1)
        self._index.append(self._count + np.searchsorted(t_us, due_ms * 1000))
        self._next_ms += len(due_ms)
        self._count = after

    def finish(self) -> None:
        """Write the index and the offset."""
        index = np.concatenate(self._index) if self._index else np.empty(0)
        self._file["ms_to_idx"] = index.astype(np.uint64)
        self._file["t_offset"] = np.int64(self._offset_us or 0)
        if not self._has_rest:
            del self._file["events/ns"]
