"""How a gyroscope lies to the camera: the rotation between their axes, the offset of their clocks, and a check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_RANGE_S, _GRID_S = 0.05, 0.002  # of clocks that differ by more nothing else agrees, either
_SAMPLE_NS = 5_000_000
_FEWEST = 50
_UNTOLD = 1.0  # deviation of a ratio that is anything
_STEP = 1e-4  # of differences; of the offset 0.2 us, as times are whole nanoseconds
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
        Of the camera's rates across its optical axis to the gyroscope's: one where the focal length is right. A roll
        looks the same through every lens.
    rate_ratio_deviation : float
        Its standard deviation.
    rms_deg_s : float
        What is left of the differences.
    observed : bool
        Whether the camera turned about two axes and more, without which the rotation is not told.
    """

    quaternion_xyzw: FloatArray
    time_offset_s: float
    bias_rad_s: FloatArray
    rate_ratio: float
    rate_ratio_deviation: float
    rms_deg_s: float
    observed: bool


def align_gyroscope(rotations: RotationSpline, gyroscope: AngularVelocities) -> ImuAlignment | None:
    """Fit a gyroscope to a camera's motion; None where they share too little time.

    For each offset the rotation and the bias are those of least squares (Kabsch, on rates without their means); with
    the best of them, all three and the ratio `s` of `omega_camera = diag(s, s, 1) R_ci (omega_imu - bias)`.
    The camera's rates err alike within a knot of its spline: so many samples count as one. Where rates across the axis
    are less than what is left of the differences, as in a roll, that is no chance any more, and the ratio is not told.
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
    _, R0, bias = fit(best)

    def misses(x: FloatArray) -> FloatArray:
        R = Rotation.from_rotvec(x[:3]).as_matrix() @ R0
        imu = gyroscope.at(t_ns + round(offset_of(x) * NS_PER_S))
        return np.asarray((imu - x[3:6]) @ R.T * [x[6], x[6], 1.0] - camera).reshape(-1)

    def offset_of(x: FloatArray) -> float:
        return float(np.clip(best + _GRID_S * (x[7] - 1), -_RANGE_S, _RANGE_S))

    start = np.concatenate([np.zeros(3), bias, [1.0, 1.0]])
    found = least_squares(misses, start, method="lm", diff_step=_STEP)
    alike = max(1.0, rotations.step_ns / _SAMPLE_NS)
    variance = alike * 2 * found.cost / max(found.fun.size - alike * len(start), 1.0)
    deviation = float(np.sqrt(variance * np.linalg.pinv(found.jac.T @ found.jac)[6, 6]))
    left = found.fun.reshape(-1, 3)
    is_told = (camera + left)[:, :2].var(axis=0).sum() > left[:, :2].var(axis=0).sum()
    spread = np.linalg.svd(camera - camera.mean(axis=0), compute_uv=False)
    return ImuAlignment(
        quaternion_xyzw=(Rotation.from_rotvec(found.x[:3]) * Rotation.from_matrix(R0)).as_quat(),
        time_offset_s=offset_of(found.x),
        bias_rad_s=found.x[3:6],
        rate_ratio=float(found.x[6]),
        rate_ratio_deviation=deviation if is_told else max(deviation, _UNTOLD),
        rms_deg_s=float(np.degrees(np.sqrt(2 * found.cost / len(t_ns)))),
        observed=bool(spread[1] > _ONE_AXIS * spread[0]),
    )
