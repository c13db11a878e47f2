"""What an HDF5 file holds beside its events: calibration and IMU as M3ED has them, MVSEC's IMU, our own poses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.hdf5.file import Hdf5Group, is_group, require_plausible
from cmaxslam_fbp.io.hdf5.texts import read_text
from cmaxslam_fbp.io.lens_names import kalibr_camera
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

CALIBRATION = "calib"
_KALIBR_NAMES = "camera_model", "distortion_model"
_KALIBR_NUMBERS = "intrinsics", "distortion_coeffs", "resolution"
GROUND_TRUTH = ("groundtruth/t_ns", "groundtruth/xyzw", "groundtruth/positions_m")
IMU = ("imu/t_ns", "imu/angular_velocity_rad_s", "imu/linear_acceleration_m_s2")
_LARGEST_M = 1e12
_M3ED_IMU = ("ovc/imu/ts", "ovc/imu/omega", "ovc/imu/accel")


def read_array(file: Hdf5Group, name: str, path: Path) -> npt.NDArray[Any]:
    """Return a small data set whole."""
    require_plausible(path, file[name])
    return np.asarray(file[name][()])


def _calibration(thing: Any) -> Hdf5Group | None:
    if not is_group(thing) or CALIBRATION not in thing or not is_group(thing[CALIBRATION]):
        return None
    return thing[CALIBRATION]


def read_resolution(thing: Any, path: Path) -> SensorSize | None:
    """Return the sensor's size in the group `calib` of the events' group, or None."""
    group = _calibration(thing)
    if group is None or "resolution" not in group:
        return None
    width, height = read_array(group, "resolution", path).reshape(-1).tolist()
    return SensorSize(int(width), int(height))


def read_camera(thing: Any, path: Path) -> Camera | None:
    """Return the calibration in the group `calib` of the events' group, in Kalibr's terms, as M3ED has it; or None."""
    group = _calibration(thing)
    if group is None or "intrinsics" not in group:
        return None
    with one_line_errors(f"{path}{group.name}", "it is not a complete calibration"):
        values: dict[str, Any] = {key: read_text(group[key], path) for key in _KALIBR_NAMES if key in group}
        values |= {key: read_array(group, key, path).tolist() for key in _KALIBR_NUMBERS if key in group}
        return kalibr_camera(values, None, f"{path}{group.name}")


def read_groundtruth(file: Hdf5Group, path: Path) -> RotationTrajectory | None:
    """Return the poses that `convert` wrote."""
    times, turns, positions = GROUND_TRUTH
    if times not in file or turns not in file:
        return None
    return RotationTrajectory(
        read_array(file, times, path),
        read_array(file, turns, path),
        read_array(file, positions, path) if positions in file else None,
    )


def read_imu(file: Hdf5Group, events: str, path: Path) -> ImuSamples | None:
    """Return the inertial samples in the camera's frame where the file has them and what turns them there."""
    if all(name in file for name in IMU):
        return ImuSamples(*(read_array(file, name, path) for name in IMU))
    if all(name in file for name in _M3ED_IMU):
        ts_us, rates, forces = (read_array(file, name, path) for name in _M3ED_IMU)
        R_ci = transform_to(file, events, "ovc/imu", path)[:3, :3]
        own = ImuSamples(microseconds_to_ns(ts_us), rates, forces)  # plausible numbers, which can be turned
        return ImuSamples(own.t_ns, own.angular_velocity_rad_s @ R_ci.T, own.linear_acceleration_m_s2 @ R_ci.T)
    beside = events.rsplit("/", 1)[0]
    if beside and f"{beside}/imu" in file and f"{beside}/imu_ts" in file:  # MVSEC: in the IMU's own frame
        rows, ts_s = (read_array(file, f"{beside}/{name}", path) for name in ("imu", "imu_ts"))
        return ImuSamples(seconds_to_ns(ts_s), rows[:, 3:], rows[:, :3])
    return None


def transform_to(file: Hdf5Group, camera: str, other: str, path: Path) -> FloatArray:
    """Return the transform (4, 4) from the frame of another sensor of M3ED to a camera's."""
    T_lc, T_lo = (
        require_transforms(read_array(file, f"{name.strip('/')}/calib/T_to_prophesee_left", path), f"{path}/{name}")
        for name in (camera, other)
    )
    return np.asarray(np.linalg.inv(T_lc) @ T_lo)


def require_transforms(transforms: npt.ArrayLike, source: str) -> FloatArray:
    """Return transforms (..., 4, 4); an error where one has no rotation, or a place that nothing is at."""
    T = np.asarray(transforms, np.float64)
    if T.size and T.shape[-2:] == (4, 4) and (np.abs(T) < _LARGEST_M).all():  # not so for a NaN
        R = T[..., :3, :3]
        if np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max() < 1e-3:
            return T
    raise TrajectoryError(f"{source}: a pose or transform of the reference is none")


def microseconds_to_ns(t_us: npt.NDArray[Any]) -> IntArray:
    """Return times in microseconds as nanoseconds."""
    t_us = _within_64_bits(t_us, 1000)
    return t_us.astype(np.int64) * 1000 if t_us.dtype.kind in "iu" else np.rint(t_us * 1e3).astype(np.int64)


def seconds_to_ns(t_s: npt.NDArray[Any]) -> IntArray:
    """Return times in seconds as nanoseconds, to the microsecond where they are Unix times."""
    t_s = _within_64_bits(t_s, NS_PER_S)
    whole = np.floor(t_s)
    return np.asarray(whole, np.int64) * NS_PER_S + np.rint((t_s - whole) * 1e6).astype(np.int64) * 1000


def _within_64_bits(times: npt.NDArray[Any], unit_ns: int) -> npt.NDArray[Any]:
    if not (np.abs(times.astype(np.float64)) < LARGEST_NS / unit_ns).all():  # not so for a NaN
        raise TrajectoryError("a time of the reference is no number, or more than 64 bits of nanoseconds hold")
    return times
