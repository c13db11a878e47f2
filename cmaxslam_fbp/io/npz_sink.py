"""Write a NumPy archive in the layout that `npz_recording` describes, without holding it in memory."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.writing import EventSource

_COLUMNS = (("t_ns", np.int64), ("x", np.uint16), ("y", np.uint16), ("p", np.uint8))


class NpzSink:
    """Columns are collected in temporary files beside the archive and put into it at the end."""

    def __init__(self, source: EventSource, path: Path, compression: str = "none") -> None:
        self._source = source
        self._path = path
        self._count = 0
        self._columns: dict[str, IO[bytes]] = {}

    def __enter__(self) -> NpzSink:
        for name, _ in _COLUMNS:
            self._columns[name] = tempfile.TemporaryFile(dir=self._path.parent)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_archive()
        finally:
            for file in self._columns.values():
                file.close()

    def write(self, events: Events) -> None:
        """Append events."""
        for name, _ in _COLUMNS:
            self._columns[name].write(np.ascontiguousarray(getattr(events, name)).data)
        self._count += len(events)

    def _write_archive(self) -> None:
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_STORED) as archive:
            for name, dtype in _COLUMNS:
                self._columns[name].seek(0)
                with archive.open(_member(name), "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(
                        member,
                        {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (self._count,)},
                    )
                    shutil.copyfileobj(self._columns[name], member, 1 << 20)
            for name, array in self._small_arrays().items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
                archive.writestr(_member(name), buffer.getvalue())

    def _small_arrays(self) -> dict[str, npt.NDArray[Any] | int | str]:
        size, camera = self._source.sensor_size, self._source.camera
        poses, imu = self._source.ground_truth, self._source.imu
        arrays: dict[str, Any] = {"width": size.width, "height": size.height}
        if camera is not None:
            arrays["intrinsics"] = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
            arrays["distortion"] = np.array(camera.distortion)
            arrays["distortion_model"] = camera.distortion_model
        if poses is not None:
            arrays["groundtruth_t_ns"] = poses.t_ns
            arrays["groundtruth_xyzw"] = poses.quaternions_xyzw
            if poses.positions_m is not None:
                arrays["groundtruth_positions_m"] = poses.positions_m
        if imu is not None:
            arrays["imu_t_ns"] = imu.t_ns
            arrays["imu_angular_velocity_rad_s"] = imu.angular_velocity_rad_s
            arrays["imu_linear_acceleration_m_s2"] = imu.linear_acceleration_m_s2
        return arrays


def _member(name: str) -> zipfile.ZipInfo:
    """Name a member, with a fixed date: the same arrays give the same bytes."""
    return zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
