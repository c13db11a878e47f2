"""How a gyroscope lies to the camera: the rotation between their axes, the offset of their clocks, and a check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_RANGE_S, _GRID_S = 0.05, 0.002  # of clocks that differ by more nothing else agrees, either
_SAMPLE_NS = 5_000_000
_FEWEST = 50
_REWEIGHTINGS, _USUAL = 5, 4.0  # and how many times the median square still weighs a half
_RATIO, _TINY = 6, 1e-30
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

    The fit is that of `_fit`, again and again, with times at which the rates disagree by far weighing less: where a
    camera stands still for a moment it sees nothing, and its rates are anything. They err alike within a knot of their
    spline: so many samples count as one. Where rates across the axis are less than what is left of the differences,
    as in a roll, that is no chance any more, and the ratio is not told.
    """
    reach_ns = round(_RANGE_S * NS_PER_S)
    first = max(rotations.start_ns, int(gyroscope.t_ns[0]) + reach_ns) if len(gyroscope) > 3 else rotations.end_ns
    last = min(rotations.end_ns, int(gyroscope.t_ns[-1]) - reach_ns) if len(gyroscope) > 3 else rotations.start_ns
    t_ns = np.arange(first, last + 1, _SAMPLE_NS, dtype=np.int64)
    if len(t_ns) < _FEWEST:
        return None
    camera = rotations.angular_velocities_at(t_ns)
    weights = np.ones(len(t_ns))
    for _ in range(_REWEIGHTINGS):
        found = _fit(camera, gyroscope, t_ns, weights)
        squares = (found.left**2).sum(axis=1)
        weights = 1 / (1 + squares / max(_USUAL * float(np.median(squares)), _TINY))
    alike = max(1.0, rotations.step_ns / _SAMPLE_NS)
    count = 3 * weights.sum()
    variance = alike * float(weights @ squares) / max(count - alike * len(found.curvature), 1.0)
    deviation = float(np.sqrt(variance * np.linalg.pinv(found.curvature)[_RATIO, _RATIO]))
    seen, left = ((weights @ values**2)[:2].sum() for values in (_centred(camera + found.left, weights), found.left))
    spread = np.linalg.svd(_centred(camera, weights), compute_uv=False)
    return ImuAlignment(
        quaternion_xyzw=found.R_ci.as_quat(),
        time_offset_s=found.time_offset_s,
        bias_rad_s=found.bias_rad_s,
        rate_ratio=found.rate_ratio,
        rate_ratio_deviation=deviation if seen > left else max(deviation, _UNTOLD),
        rms_deg_s=float(np.degrees(np.sqrt(weights @ squares / weights.sum()))),
        observed=bool(spread[1] > _ONE_AXIS * spread[0]),
    )


@dataclass(frozen=True)
class _Fit:
    """Values, what is left (T, 3) of the differences in rad/s, and the curvature (8, 8) of half their squares."""

    R_ci: Rotation
    time_offset_s: float
    bias_rad_s: FloatArray
    rate_ratio: float
    left: FloatArray
    curvature: FloatArray


def _fit(camera: FloatArray, gyroscope: AngularVelocities, t_ns: IntArray, weights: FloatArray) -> _Fit:
    """Return what fits the camera's rates (T, 3) best, with times of weights (T,).

    For each offset the rotation and the bias are those of least squares (Kabsch, on rates without their means); from
    the best of them, all three and the ratio `s` of `omega_camera = diag(s, s, 1) R_ci (omega_imu - bias)`.
    """

    def imu_at(offset_s: float) -> FloatArray:
        return gyroscope.at(t_ns + round(offset_s * NS_PER_S))

    def place(offset_s: float) -> tuple[float, FloatArray, FloatArray]:
        imu = imu_at(offset_s)
        U, _, Vt = np.linalg.svd((_centred(camera, weights).T * weights) @ _centred(imu, weights))
        R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
        bias = (weights @ imu - R.T @ (weights @ camera)) / weights.sum()
        return float(np.median(((camera - (imu - bias) @ R.T) ** 2).sum(axis=1))), R, bias

    grid = np.arange(-_RANGE_S, _RANGE_S + _GRID_S / 2, _GRID_S)
    best = float(grid[int(np.argmin([place(offset)[0] for offset in grid]))])
    _, R0, bias = place(best)

    def offset_of(x: FloatArray) -> float:
        return float(np.clip(best + _GRID_S * (x[7] - 1), -_RANGE_S, _RANGE_S))

    def left(x: FloatArray) -> FloatArray:
        R = Rotation.from_rotvec(x[:3]).as_matrix() @ R0
        return np.asarray((imu_at(offset_of(x)) - x[3:6]) @ R.T * [x[_RATIO], x[_RATIO], 1.0] - camera)

    def weighted(x: FloatArray) -> FloatArray:
        return np.asarray((left(x).T * np.sqrt(weights)).T.reshape(-1))

    found = least_squares(weighted, np.concatenate([np.zeros(3), bias, [1.0, 1.0]]), method="lm", diff_step=_STEP)
    x = np.asarray(found.x)
    R_ci = Rotation.from_rotvec(x[:3]) * Rotation.from_matrix(R0)
    return _Fit(R_ci, offset_of(x), x[3:6], float(x[_RATIO]), left(x), found.jac.T @ found.jac)


def _centred(rates: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(rates - weights @ rates / weights.sum())
