"""What data sets keep beside their files of events: calibrations, poses and IMU of DSEC, TUM-VIE, M3ED and MVSEC.

Poses become those of the event camera, and inertial samples are turned to its frame, by the data sets' own
calibrations; where one is missing, the reference is an error that says what to put where.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.calibration import read_calibration, read_sensor_size, small_text
from cmaxslam_fbp.io.hdf5.file import open_hdf5
from cmaxslam_fbp.io.hdf5.reference import (
    microseconds_to_ns,
    read_array,
    require_transforms,
    seconds_to_ns,
    transform_to,
)
from cmaxslam_fbp.io.trajectory_files import read_trajectory, read_tum_vie_imu
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


@dataclass(frozen=True, kw_only=True)
class Companions:
    """The files beside a recording; what a data set does not keep there stays None.

    `calibration` may be of several cameras, of which that of the recording has a number.
    """

    calibration: Path | None = None
    number: int = 0

    def sensor_size(self) -> SensorSize | None:
        """Return the size that they tell, if any."""
        return None if self.calibration is None else read_sensor_size(self.calibration, 1.0)

    def camera(self, size: SensorSize) -> Camera | None:
        """Return the calibration of a camera of that size, if there is one."""
        return None if self.calibration is None else read_calibration(self.calibration, size, self.number)

    def poses(self) -> RotationTrajectory | None:
        """Return the camera's poses, if there are any."""
        return None

    def imu(self) -> ImuSamples | None:
        """Return the inertial samples in the camera's frame, if there are any."""
        return None


def find_companions(path: Path, events: str, number: int) -> Companions:
    """Return the files that belong to a file with a data set of events, of a left (0) or right (1) camera."""
    path = path.absolute()
    if events.startswith("/prophesee/"):
        return M3ed(path=path, events=events)
    if events.startswith("/davis/"):
        return Mvsec(path=path, events=events)
    return TumVie.find(path, number) or Dsec.find(path, number)


def _first_file(*candidates: Path) -> Path | None:
    return next((file for file in candidates if file.is_file()), None)


@dataclass(frozen=True, kw_only=True)
class Dsec(Companions):
    """`cam_to_cam.yaml` in the folder of the events or one above it, in `calibration/` there; `rectify_map.h5`."""

    rectify_map: Path | None

    @staticmethod
    def find(path: Path, number: int) -> Dsec:
        """Look for the files."""
        folders = path.parents[:4]
        places = [place / "cam_to_cam.yaml" for folder in folders for place in (folder, folder / "calibration")]
        rectify_map = _first_file(path.parent / "rectify_map.h5")
        return Dsec(calibration=_first_file(*places), number=number, rectify_map=rectify_map)

    def sensor_size(self) -> SensorSize | None:
        """Return the calibration's, or that of the map."""
        if self.calibration is not None or self.rectify_map is None:
            return super().sensor_size()
        with open_hdf5(self.rectify_map) as file:
            height, width, _ = file["rectify_map"].shape
            return SensorSize(int(width), int(height))


@dataclass(frozen=True, kw_only=True)
class TumVie(Companions):
    """`mocap_data.txt`, `imu_data.txt`, and the calibrations `camera-calibrationA.json`, `mocap-imu-calibrationA.json`.

    They lie in the folder of the events, in one above it, or in `NAME-vi_gt_data/` beside `NAME-events_left.h5`.
    """

    markers: Path | None
    mocap: Path | None
    imu_data: Path | None

    @staticmethod
    def find(path: Path, number: int) -> TumVie | None:
        """Look for the files; those of the letter A are of the first recordings, of B of all others."""
        name = re.sub(r"-events_(left|right)$", "", path.stem)
        folders = [path.parent, path.parent / f"{name}-vi_gt_data", path.parent.parent]
        letters = "AB" if re.match(r"loop-floor|mocap-desk|skate-easy", name) else "BA"

        def look(*names: str) -> Path | None:
            return _first_file(*(folder / file for file in names for folder in folders))

        found = TumVie(
            calibration=look(*(f"camera-calibration{letter}.json" for letter in letters)),
            number=number,
            markers=look(*(f"mocap-imu-calibration{letter}.json" for letter in letters)),
            mocap=look("mocap_data.txt"),
            imu_data=look("imu_data.txt"),
        )
        return found if any((found.calibration, found.mocap, found.imu_data)) else None

    def poses(self) -> RotationTrajectory | None:
        """Return the camera's poses: `T_wc = T_wm T_im^-1 T_ic` with the markers' frame m and the IMU's i."""
        if self.mocap is None:
            return None
        markers = read_trajectory(self.mocap, time_unit="us")
        T_ic = self._imu_camera("mocap_data.txt has the poses of markers")
        T_im = _transform(_json(self._required(self.markers, "mocap-imu-calibration*.json")), "T_imu_marker")
        T_wm = np.tile(np.eye(4), (len(markers), 1, 1))
        T_wm[:, :3, :3] = markers.rotations.as_matrix()
        T_wm[:, :3, 3] = markers.positions_m
        return _from_matrices(markers.t_ns, T_wm, np.linalg.inv(T_im) @ T_ic)

    def imu(self) -> ImuSamples | None:
        """Return the samples, turned by `R_ic^T`."""
        if self.imu_data is None:
            return None
        samples = read_tum_vie_imu(self.imu_data)
        R_ic = self._imu_camera("imu_data.txt is in the IMU's frame")[:3, :3]
        return ImuSamples(samples.t_ns, samples.angular_velocity_rad_s @ R_ic, samples.linear_acceleration_m_s2 @ R_ic)

    def _imu_camera(self, why: str) -> FloatArray:
        rig = _json(self._required(self.calibration, "camera-calibration*.json", why))
        cameras = rig["T_imu_cam"]
        return _transform({"T_imu_cam": cameras[self.number + (2 if len(cameras) == 4 else 0)]}, "T_imu_cam")

    @staticmethod
    def _required(file: Path | None, name: str, why: str = "the markers are not at the camera") -> Path:
        if file is None:
            raise TrajectoryError(f"{why}: put TUM-VIE's {name} into the folder of the recording")
        return file


@dataclass(frozen=True, kw_only=True)
class M3ed(Companions):
    """`NAME_pose_gt.h5` (or `NAME_depth_gt.h5`) beside `NAME_data.h5`, which has the rest: left `Cn_T_C0`."""

    path: Path
    events: str

    def poses(self) -> RotationTrajectory | None:
        """Return `T_wc = T_wl T_lc`, with the left camera's frame l, the world that of its first pose."""
        stem = self.path.stem.removesuffix("_data")
        file = _first_file(*(self.path.with_name(f"{stem}_{kind}_gt.h5") for kind in ("pose", "depth")))
        if file is None:
            return None
        with one_line_errors(file), open_hdf5(file) as poses:
            T_cw = require_transforms(read_array(poses, "Cn_T_C0", file), str(file))
            t_ns = microseconds_to_ns(read_array(poses, "ts", file))
        with open_hdf5(self.path) as own:
            T_lc = transform_to(own, "prophesee/left", self.events, self.path)
        return _from_matrices(t_ns, np.linalg.inv(T_cw), T_lc)


@dataclass(frozen=True, kw_only=True)
class Mvsec(Companions):
    """`NAME_gt.hdf5` beside `NAME_data.hdf5`: `/davis/left/pose`, the left camera in the world.

    The IMU is in the file of events; calibrations are archives of Kalibr files, to be given.
    """

    path: Path
    events: str

    def poses(self) -> RotationTrajectory | None:
        """Return the poses of the left camera."""
        file = _first_file(self.path.with_name(f"{self.path.stem.removesuffix('_data')}_gt.hdf5"))
        if file is None:
            return None
        if not self.events.startswith("/davis/left"):
            raise TrajectoryError(f"{file} has the poses of the left camera alone")
        with one_line_errors(file), open_hdf5(file) as poses:
            T_wc = require_transforms(read_array(poses, "davis/left/pose", file), str(file))
            return _from_matrices(seconds_to_ns(read_array(poses, "davis/left/pose_ts", file)), T_wc, np.eye(4))


def _from_matrices(t_ns: Any, T_wl: Any, T_lc: Any) -> RotationTrajectory:
    """Return the trajectory `T_wl T_lc` of poses (M, 4, 4) of a frame l; of equal times the first counts."""
    if T_wl.shape != (len(t_ns), 4, 4):
        raise TrajectoryError(f"the poses {T_wl.shape} do not fit {len(t_ns)} times")
    t_ns, first = np.unique(t_ns, return_index=True)
    T_wc = T_wl[first] @ T_lc
    R_wc = T_wc[:, :3, :3]
    return RotationTrajectory(t_ns, Rotation.from_matrix(R_wc).as_quat(), T_wc[:, :3, 3])


def _json(file: Path) -> Any:
    with one_line_errors(file, "it is no complete calibration", TrajectoryError), file.open("rb") as text:
        return json.loads(small_text(text, str(file)))["value0"]


def _transform(values: Any, name: str) -> FloatArray:
    """Return a pose of Basalt's as a matrix (4, 4)."""
    with one_line_errors(name, "it is no pose", TrajectoryError):
        T = np.eye(4)
        T[:3, :3] = Rotation.from_quat([float(values[name][key]) for key in ("qx", "qy", "qz", "qw")]).as_matrix()
        T[:3, 3] = [float(values[name][key]) for key in ("px", "py", "pz")]
        return require_transforms(T, name)
