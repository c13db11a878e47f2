"""How a gyroscope lies to the camera: the rotation between their axes, the offset of their clocks, and a check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_RANGE_S, _GRID_S = 0.05, 0.002  # of clocks that differ by more nothing else agrees, either
_SAMPLE_NS = 5_000_000
_FEWEST = 50
_ONE_AXIS = 0.1  # of the spread of the rates about the main axis: with less about all others the axes are not told


@dataclass(frozen=True)
class ImuAlignment:
    """`omega_camera(t) = R_ci (omega_imu(t + offset) - bias)`, fitted to a recording.

    Attributes
    ----------
    quaternion_xyzw : (4,) float64
        `R_ci`, from the axes of the IMU to those of the camera.
    time_offset_s : float
        What the IMU's clock is ahead of the camera's.
    bias_rad_s : (3,) float64
        Of the gyroscope.
    rate_ratio : float
        Of the camera's rates to the gyroscope's: one where the focal length is right.
    rms_deg_s : float
        What is left of the differences.
    observed : bool
        Whether the camera turned about two axes and more, without which the rotation is not told.
    """

    quaternion_xyzw: FloatArray
    time_offset_s: float
    bias_rad_s: FloatArray
    rate_ratio: float
    rms_deg_s: float
    observed: bool


def align_gyroscope(rotations: RotationSpline, gyroscope: AngularVelocities) -> ImuAlignment | None:
    """Fit a gyroscope to a camera's motion; None where they share too little time.

    For each offset the rotation and the bias are those of least squares (Kabsch, on rates without their means).
    """
    reach_ns = round(_RANGE_S * NS_PER_S)
    first = max(rotations.start_ns, int(gyroscope.t_ns[0]) + reach_ns) if len(gyroscope) > 3 else rotations.end_ns
    last = min(rotations.end_ns, int(gyroscope.t_ns[-1]) - reach_ns) if len(gyroscope) > 3 else rotations.start_ns
    t_ns = np.arange(first, last + 1, _SAMPLE_NS, dtype=np.int64)
    if len(t_ns) < _FEWEST:
        return None
    camera = rotations.angular_velocities_at(t_ns)

    def fit(offset_s: float) -> tuple[float, FloatArray, FloatArray]:
        imu = gyroscope.at(t_ns + round(offset_s * NS_PER_S))
        U, _, Vt = np.linalg.svd((camera - camera.mean(axis=0)).T @ (imu - imu.mean(axis=0)))
        R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
        bias = imu.mean(axis=0) - R.T @ camera.mean(axis=0)
        return float(((camera - (imu - bias) @ R.T) ** 2).sum(axis=1).mean()), R, bias

    grid = np.arange(-_RANGE_S, _RANGE_S + _GRID_S / 2, _GRID_S)
    best = float(grid[int(np.argmin([fit(offset)[0] for offset in grid]))])
    bounds = max(best - _GRID_S, -_RANGE_S), min(best + _GRID_S, _RANGE_S)
    offset_s = float(minimize_scalar(lambda offset: fit(offset)[0], bounds=bounds, method="bounded").x)
    square, R, bias = fit(offset_s)
    turned = (gyroscope.at(t_ns + round(offset_s * NS_PER_S)) - bias) @ R.T
    spread = np.linalg.svd(camera - camera.mean(axis=0), compute_uv=False)
    return ImuAlignment(
        quaternion_xyzw=Rotation.from_matrix(R).as_quat(),
        time_offset_s=offset_s,
        bias_rad_s=bias,
        rate_ratio=float(np.vdot(camera, turned) / max(float(np.vdot(turned, turned)), 1e-300)),
        rms_deg_s=float(np.degrees(np.sqrt(square))),
        observed=bool(spread[1] > _ONE_AXIS * spread[0]),
    )
