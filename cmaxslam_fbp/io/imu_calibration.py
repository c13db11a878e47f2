"""The section `imu_alignment` of a calibration file: how a gyroscope lies to the camera."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.calibration import small_text
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.plain_yaml import load_yaml
from cmaxslam_fbp.trajectory import AngularVelocities

_NAME = "imu_alignment"


@dataclass(frozen=True)
class GyroscopePlace:
    """`omega_camera(t) = R (omega_imu(t + offset) - bias)`, as `calibrate` writes it."""

    quaternion_xyzw: FloatArray
    time_offset_s: float
    bias_rad_s: FloatArray

    def apply(self, gyroscope: AngularVelocities) -> AngularVelocities:
        """Return the rates in the camera's axes and on its clock."""
        turned = Rotation.from_quat(self.quaternion_xyzw).apply(gyroscope.omega_rad_s - self.bias_rad_s)
        return AngularVelocities(gyroscope.t_ns - round(self.time_offset_s * NS_PER_S), np.asarray(turned))


def read_imu_alignment(path: Path) -> GyroscopePlace | None:
    """Read how the gyroscope lies; None where the file does not tell, or says that it is not observed."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return None
    with path.open("rb") as file:
        text = small_text(file, f"the calibration {path}")
    if _NAME not in text:
        return None
    with one_line_errors(f"the calibration {path}", f"its {_NAME} is damaged", CalibrationError):
        section = load_yaml(text, str(path), CalibrationError)[_NAME]
        if section["observed"] not in ("yes", True):
            return None
        quaternion, bias = (np.array(section[name], float) for name in ("quaternion_xyzw", "bias_rad_s"))
        return GyroscopePlace(quaternion.reshape(4), float(section["time_offset_s"]), bias.reshape(3))
