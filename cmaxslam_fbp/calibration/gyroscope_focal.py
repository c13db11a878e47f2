"""The focal length from a gyroscope: the true rate of a turn, and how fast the image moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.calibration.bearing_grid import BearingGrid
from cmaxslam_fbp.calibration.compensation import compensating_rates
from cmaxslam_fbp.calibration.imu_alignment import ImuAlignment
from cmaxslam_fbp.calibration.lens_calibration import LensCalibration
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values

_GYROSCOPE_SCALE = 0.015  # how well gyroscopes of such cameras know their own scale: data sheets give 3 % at most
_TIMES = 500  # at which the motion is looked at
_LEAST = 1e-3  # of a ratio


@dataclass(frozen=True)
class GyroscopeFocal:
    """By how much the logarithm of a focal length must change, and how well that is known (standard deviation)."""

    change: float
    deviation: float


def focal_by_gyroscope(lens: LensCalibration, imu: ImuAlignment, model: str) -> GyroscopeFocal:
    """Return the focal length at which the camera turns as fast across its axis as the gyroscope says.

    A lens parameter that changes by one changes the rates by `M omega` (see `compensating_rates`). Of the focal length
    that is about `-omega` across the axis and nothing along it: a roll does not tell. What is unknown of the others,
    of the distortion most, is unknown of the focal length as well.
    """
    camera, spline = lens.camera, lens.rotations
    parameters = LensParameters.of(camera, model)
    view = BearingGrid(camera.width, camera.height).view(parameters, parameter_values(camera, parameters.names))
    since_ns = np.linspace(0, spline.end_ns - spline.start_ns, _TIMES).astype(np.int64)
    rates = spline.angular_velocities_at(spline.start_ns + since_ns)
    across = rates * [1.0, 1.0, 0.0]
    slopes = np.einsum("ti,jik,tk->j", across, compensating_rates(view)[1], rates) / np.vdot(across, across)
    by_focal, by_others = slopes[0], slopes[1:]
    doubts = dict(zip(lens.names, lens.deviations.tolist(), strict=True))
    others = by_others * [doubts.get(name, 0.0) for name in parameters.names[1:]]
    ratio = max(imu.rate_ratio, _LEAST)
    doubt = np.linalg.norm([imu.rate_ratio_deviation / ratio, _GYROSCOPE_SCALE, *others])
    return GyroscopeFocal(float(-np.log(ratio) / by_focal), float(doubt / abs(by_focal)))
