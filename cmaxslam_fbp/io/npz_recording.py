"""A recording in a NumPy archive, for anyone's data.

Arrays `x`, `y`, `p` (1 or True for brighter; 0, False or -1 for darker) and the time as `t_ns` (integer nanoseconds),
or as `t`: floating-point seconds, or integers in the unit that the string `time_unit` names (s, ms, us or ns; where it
is missing, micro- or nanoseconds by their rate). Optional: `width` and `height`; `intrinsics` (fx fy cx cy),
`distortion` and `distortion_model`; `groundtruth_t_ns`, `groundtruth_xyzw` and `groundtruth_positions_m`; `imu_t_ns`,
`imu_angular_velocity_rad_s` and `imu_linear_acceleration_m_s2`.
"""

from __future__ import annotations

import io
import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.from_arrays import events_from_arrays, require_columns, unit_of_times
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.bad_input import one_line_errors, open_member, zip_members
from cmaxslam_fbp.io.lens_names import distortion_model
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.writing import EventSource, Sink, WriteEvents
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_LONGEST_HEADER = 1 << 16
_EVENTS_PER_CHUNK = 500_000
_COLUMNS = {"t_ns": np.int64, "x": np.uint16, "y": np.uint16, "p": np.uint8}


@contextmanager
def write_npz(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Make an archive without holding it in memory: columns wait in temporary files until all are there."""
    with ExitStack() as stack:
        columns = {name: stack.enter_context(tempfile.TemporaryFile(dir=path.parent)) for name in _COLUMNS}

        def write(events: Events) -> None:
            for name, column in columns.items():
                column.write(np.ascontiguousarray(getattr(events, name)).data)

        yield write
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, column in columns.items():
                dtype, size = np.dtype(_COLUMNS[name]), column.tell()
                column.seek(0)
                with archive.open(_member(name), "w", force_zip64=True) as member:
                    header = {"descr": dtype.str, "fortran_order": False, "shape": (size // dtype.itemsize,)}
                    np.lib.format.write_array_header_1_0(member, header)
                    shutil.copyfileobj(column, member, 1 << 20)
            for name, array in _small_arrays(source).items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
                archive.writestr(_member(name), buffer.getvalue())


def _small_arrays(source: EventSource) -> dict[str, npt.NDArray[Any] | int | str]:
    size, camera = source.sensor_size, source.camera
    poses, imu = source.ground_truth, source.imu
    arrays: dict[str, Any] = {"width": size.width, "height": size.height}
    if camera is not None:
        arrays["intrinsics"] = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
        arrays["distortion"] = np.array(camera.distortion)
        arrays["distortion_model"] = camera.distortion_model
    if poses is not None:
        arrays["groundtruth_t_ns"] = poses.t_ns
        arrays["groundtruth_xyzw"] = poses.quaternions_xyzw
        if poses.positions_m is not None:
            arrays["groundtruth_positions_m"] = np.ascontiguousarray(poses.positions_m)  # the reader wants rows
    if imu is not None:
        arrays["imu_t_ns"] = imu.t_ns
        arrays["imu_angular_velocity_rad_s"] = imu.angular_velocity_rad_s
        arrays["imu_linear_acceleration_m_s2"] = imu.linear_acceleration_m_s2
    return arrays


def _member(name: str) -> zipfile.ZipInfo:
    """Name a member, with a fixed date: the same arrays give the same bytes."""
    return zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))


class NpzRecording(Recording):
    """An `.npz` archive, read in blocks: it may be larger than the memory."""

    description = "an .npz archive"
    endings = (".npz",)
    sinks: ClassVar[Mapping[str, Sink]] = {".npz": write_npz}
    size_advice = "add the numbers 'width' and 'height' to it, or give --sensor-size WIDTHxHEIGHT"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell an archive of arrays by its ending, or by an array of columns in it."""
        return super().recognises(path) or "x.npy" in zip_members(path)

    def _examine(self) -> None:
        with zipfile.ZipFile(self.path) as archive:
            self._members = {name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")}
        self._time_name = "t_ns" if "t_ns" in self._members else "t"
        missing = [name for name in (self._time_name, "x", "y", "p") if name not in self._members]
        if missing:
            there = ", ".join(sorted(self._members)) or "none"
            raise RecordingError(f"{self.path} lacks the arrays {', '.join(missing)}; it has {there}")

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name and type of the arrays, and their lengths."""
        return self._read(self._headers)

    def _headers(self) -> list[tuple[str, str, int]]:
        with zipfile.ZipFile(self.path) as archive:
            rows = []
            for name in sorted(self._members):
                with archive.open(f"{name}.npy") as member:
                    shape, dtype = read_header(member)
                    rows.append((name, str(dtype), shape[0] if shape else 1))
        return rows

    def _load(self, name: str) -> npt.NDArray[Any] | None:
        """Return a small array, or None where it is missing."""
        if name not in self._members:
            return None
        source = f"{self.path}/{name}"
        with zipfile.ZipFile(self.path) as archive, one_line_errors(source, "it is no array that NumPy wrote"):
            return read_array(archive, f"{name}.npy")

    def _load_numbers(self, name: str) -> FloatArray | None:
        """Return a small array of real numbers, or None where it is missing."""
        found = self._load(name)
        if found is None:
            return None
        if found.dtype.kind not in "fiu":
            raise RecordingError(f"{self.path}/{name} has {found.dtype}, which is no kind of real numbers")
        return found.astype(np.float64)

    def _own_sensor_size(self) -> SensorSize | None:
        width, height = self._load("width"), self._load("height")
        if width is None or height is None:
            return None
        with one_line_errors(f"{self.path}/width or height", "they must be whole numbers"):
            return SensorSize(int(width), int(height))

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            members = {
                name: stack.enter_context(archive.open(f"{name}.npy")) for name in (self._time_name, "x", "y", "p")
            }
            headers = {name: read_header(member) for name, member in members.items()}
            count = require_columns(headers, str(self.path))
            named = self._load("time_unit")
            unit = "ns" if self._time_name == "t_ns" else None if named is None else str(named)
            note = ""
            for first in range(0, count, _EVENTS_PER_CHUNK):
                length = min(_EVENTS_PER_CHUNK, count - first)
                t, *others = (
                    _read_block(member, headers[name][1], length, f"{self.path}/{name}")
                    for name, member in members.items()
                )
                if unit is None:
                    unit, note = unit_of_times(t, str(self.path))
                events = events_from_arrays(t, *others, time_unit=unit, source=str(self.path), first=first)
                yield Piece(events, f"the events {first} to {first + length - 1} of {self.path}", note)

    def _own_calibration(self) -> Camera | None:
        intrinsics, lens, model = map(self._load, ("intrinsics", "distortion", "distortion_model"))
        if intrinsics is None:
            return None
        with one_line_errors(
            f"{self.path}/intrinsics or distortion", "they must be the numbers fx fy cx cy, and k1 k2"
        ):
            fx, fy, cx, cy = (float(number) for number in intrinsics)
            distortion = () if lens is None else tuple(lens.tolist())
            name = distortion_model("" if model is None else str(model), distortion)
            return Camera(*self.calibrated_size, fx, fy, cx, cy, distortion, name)

    def _poses(self) -> RotationTrajectory | None:
        times, quaternions = self._load("groundtruth_t_ns"), self._load_numbers("groundtruth_xyzw")
        if times is None or quaternions is None:
            return None
        positions = self._load_numbers("groundtruth_positions_m")
        return RotationTrajectory(times, quaternions, positions)

    def _imu(self) -> ImuSamples | None:
        times = self._load("imu_t_ns")
        turns, accelerations = map(self._load_numbers, ("imu_angular_velocity_rad_s", "imu_linear_acceleration_m_s2"))
        if times is None or turns is None or accelerations is None:
            return None
        return ImuSamples(times, turns, accelerations)


def read_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and type of an array in NumPy's format; the file then stands at its first value."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        return shape, dtype
    length = member.read(4)
    if int.from_bytes(length, "little") > _LONGEST_HEADER:  # NumPy would read all of it first
        raise ValueError("the header of an array claims more than it can hold")
    header = io.BytesIO(length + member.read(int.from_bytes(length, "little")))
    shape, _, dtype = np.lib.format.read_array_header_2_0(header)
    return shape, dtype


def read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Return an array of an archive, if it is as long as it claims."""
    with open_member(archive, name) as member:
        shape, dtype = read_header(member)
        if math.prod(shape) * dtype.itemsize != archive.getinfo(name).file_size - member.tell():
            raise ValueError(f"it claims the shape {shape}, but has another length")
        member.seek(0)
        return np.lib.format.read_array(member, allow_pickle=False)


def _read_block(member: IO[bytes], dtype: np.dtype, count: int, source: str) -> npt.NDArray[Any]:
    data = member.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise RecordingError(f"{source} ends too early: the archive is cut")
    return np.frombuffer(data, dtype)
