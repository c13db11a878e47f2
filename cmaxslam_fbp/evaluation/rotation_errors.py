"""Angles between trajectories: absolute, relative, and of their angular velocities. All in degrees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

_BLOCK = 10_000  # poses at a time: of a long recording what is computed on the way would fill memory


def absolute_errors_deg(ground_truth: Rotation, estimate: Rotation, alignment: Rotation) -> FloatArray:
    """Return the angles (N,) of `R_gt^T A R_est` in degrees."""
    return np.degrees((ground_truth.inv() * alignment * estimate).magnitude())


def relative_errors_deg_s(estimate: RotationTrajectory, ground_truth: RotationTrajectory, dt_s: float) -> FloatArray:
    """Return the angles between the relative rotations over `dt_s`, divided by it: (K,) in deg/s.

    For each pose of the estimate at `t` with `t + dt` still within both trajectories: the angle of
    `(R_gt(t)^T R_gt(t + dt))^T R_est(t)^T R_est(t + dt)`, over `dt`. Both are interpolated (slerp):
    where the poses of the estimate are further apart than `dt`, this measures the interpolated estimate.
    """
    dt_ns = round(dt_s * NS_PER_S)
    if dt_ns <= 0:
        raise ValueError(f"a relative error needs a positive time step, not {dt_s} s")
    start = estimate.t_ns
    both = estimate.covers(start + dt_ns) & ground_truth.covers(start) & ground_truth.covers(start + dt_ns)
    start = start[both]
    angles_rad = np.empty(len(start))
    for first in range(0, len(start), _BLOCK):
        near = start[first : first + _BLOCK]
        turned, truly_turned = (  # `R(t)^T R(t + dt)`
            curve.rotation_at(near).inv() * curve.rotation_at(near + dt_ns) for curve in (estimate, ground_truth)
        )
        angles_rad[first : first + _BLOCK] = (truly_turned.inv() * turned).magnitude()
    return np.degrees(angles_rad) * (NS_PER_S / dt_ns)


@dataclass(frozen=True)
class AngularVelocityErrors:
    """Differences of N body-frame angular velocities from their reference, in deg/s.

    Attributes
    ----------
    count : int
        Number of times compared.
    rms_deg_s : float
        `sqrt(mean |d|^2)`: of the vectors' lengths.
    rms_per_axis_deg_s : float
        `sqrt(mean d_a^2)` over times and axes, as in the paper's tables: `rms_deg_s / sqrt(3)`.
    axes_rms_deg_s : tuple of three floats
        The same for each axis alone.
    """

    count: int
    rms_deg_s: float
    rms_per_axis_deg_s: float
    axes_rms_deg_s: tuple[float, float, float]


def angular_velocity_errors(
    estimate: AngularVelocities | RotationTrajectory,
    reference: AngularVelocities | RotationTrajectory,
    t_ns: IntArray | None = None,
) -> AngularVelocityErrors:
    """Compare angular velocities at the estimate's times, or at `t_ns`, as far as both cover them."""
    times = estimate.t_ns if t_ns is None else t_ns
    for covering in (estimate, reference):
        times = times[(times >= covering.t_ns[0]) & (times <= covering.t_ns[-1])]
    if len(times) == 0:
        raise TrajectoryError("the angular velocities and their reference have no time in common")
    squares = np.empty((len(times), 3))
    for first in range(0, len(times), _BLOCK):
        near = times[first : first + _BLOCK]
        difference = _velocities_at(estimate, near) - _velocities_at(reference, near)
        squares[first : first + _BLOCK] = np.degrees(difference) ** 2
    x, y, z = np.sqrt(squares.mean(axis=0)).tolist()
    return AngularVelocityErrors(
        count=len(times),
        rms_deg_s=float(np.sqrt(squares.sum(axis=1).mean())),
        rms_per_axis_deg_s=float(np.sqrt(squares.mean())),
        axes_rms_deg_s=(x, y, z),
    )


def _velocities_at(curve: AngularVelocities | RotationTrajectory, t_ns: IntArray) -> FloatArray:
    """Return the body rates (N, 3) in rad/s."""
    if isinstance(curve, RotationTrajectory):
        return curve.angular_velocity_at(t_ns)
    return curve.at(t_ns)


def rms(values: FloatArray) -> float:
    """`sqrt(mean v^2)`."""
    return float(np.sqrt(np.mean(values**2)))
