"""Initialisation of a spline from angular velocities: integrate them, then fit the control rotations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory import spline_fit_kernels, spline_kernels
from cmaxslam_fbp.trajectory.angular_velocities import AngularVelocities
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.spline import RotationSpline

_MAX_ITERATIONS = 20
_CONVERGED_RAD = 1e-11
_ROUNDING = 1e-12  # relative; a cost that rises by more has not been improved
_KNOWN_PER_STEP = 20  # samples per knot that stand for what is known of a spline to be continued
_DAMPING = 1e-13  # of the largest diagonal element: keeps the matrix definite, and does not move the minimum


def integrate_angular_velocities(
    velocities: AngularVelocities, start_rotation: Rotation, start_ns: int, end_ns: int
) -> RotationTrajectory:
    """Return the motion from `start_rotation` at `start_ns` to `end_ns` that has the given body rates.

    `R_{k+1} = R_k exp((omega_k + omega_{k+1}) / 2 (t_{k+1} - t_k))`: the trapezoid rule, second-order accurate. The
    times are `start_ns`, those of all samples strictly between, and `end_ns`. Rates at the two ends are interpolated
    linearly; before the first sample and after the last one, the rate stays what it is there.
    """
    if len(velocities) == 0:
        raise TrajectoryError("there are no angular velocities to integrate")
    if end_ns <= start_ns:
        raise TrajectoryError(f"the integration ends at {end_ns} ns, which is not after its start at {start_ns} ns")
    inside = velocities.t_ns[(velocities.t_ns > start_ns) & (velocities.t_ns < end_ns)]
    t_ns = np.concatenate([[np.int64(start_ns)], inside, [np.int64(end_ns)]])
    omega = np.empty((len(t_ns), 3))
    for axis in range(3):
        omega[:, axis] = np.interp(
            (t_ns - start_ns).astype(np.float64),
            (velocities.t_ns - start_ns).astype(np.float64),
            velocities.omega_rad_s[:, axis],
        )
    quaternions = np.empty((len(t_ns), 4))
    quaternions[0] = start_rotation.as_quat()
    spline_fit_kernels.integrate(t_ns, omega, quaternions)
    return RotationTrajectory(t_ns, quaternions)


def fit_spline(
    samples: RotationTrajectory,
    *,
    order: int,
    start_ns: int,
    step_ns: int,
    count: int,
    fixed_xyzw: npt.ArrayLike | None = None,
    smoothness: float = 1e-8,
) -> RotationSpline:
    """Fit a spline to sampled rotations by least squares in the tangent space.

    Minimises `sum_n |log(R(t_n)^T R_n)|^2 + s sum_k |d_{k+1} - d_k|^2` over the control rotations, where
    `d_k = log(R_k^T R_{k+1})`, by Gauss-Newton with exact Jacobians and banded normal equations: the time is
    linear in the number of samples. `s` is `smoothness` times the samples per control rotation, so small that it
    decides only what no sample does: there the motion goes on at a constant rate.

    Parameters
    ----------
    samples : RotationTrajectory
        Rotations at times that the spline covers.
    order, start_ns, step_ns
        As in `RotationSpline`.
    count : int
        Number of control rotations.
    fixed_xyzw : (F, 4) float64, optional
        The leading control rotations, where they are known: they do not move.
    smoothness : float
        Weight of the regulariser.
    """
    fixed = np.empty((0, 4)) if fixed_xyzw is None else np.asarray(fixed_xyzw, np.float64).reshape(-1, 4)
    if len(fixed) > count:
        raise TrajectoryError(f"{len(fixed)} control rotations are fixed, but the spline has only {count}")
    spline = RotationSpline(order, start_ns, step_ns, _guess(samples, order, start_ns, step_ns, count, fixed))
    if not spline.covers(samples.t_ns).all():
        raise TrajectoryError(
            f"the samples from {samples.start_ns} to {samples.end_ns} ns reach outside the spline, "
            f"which covers {spline.start_ns} to {spline.end_ns} ns"
        )
    if len(fixed) == count:
        return spline
    stiffness = smoothness * max(len(samples) / count, 1.0)
    controls = spline.quaternions_xyzw.copy()
    best, best_cost = controls.copy(), np.inf
    band = np.empty((3 * max(order, 3), 3 * (count - len(fixed))))
    gradient = np.empty(band.shape[1])
    for _ in range(_MAX_ITERATIONS):
        cost = spline_fit_kernels.normal_equations(
            order, controls, spline.start_ns, spline.step_ns, samples.t_ns, samples.quaternions_xyzw,
            len(fixed), stiffness, band, gradient,
        )  # fmt: skip
        if not cost <= best_cost * (1 + _ROUNDING):
            break
        best, best_cost = controls.copy(), cost
        band[0] += _DAMPING * band[0].max()
        spline_fit_kernels.solve_banded(band, gradient)
        deltas = -gradient.reshape(-1, 3)
        spline_kernels.perturb(controls, len(fixed), deltas)
        if np.abs(deltas).max() < _CONVERGED_RAD:
            best = controls
            break
    return RotationSpline(order, start_ns, step_ns, best)


def continue_spline(spline: RotationSpline, first: int, fixed: int, samples: RotationTrajectory) -> RotationSpline:
    """Continue a spline along sampled rotations, from where they start to where they end.

    The control rotations from index `first + fixed` on are fitted anew: to the spline itself before the samples start,
    and to the samples. To hold on to all that the spline has and fit only new ones would be unstable: each makes up
    for the error of the last by one of the opposite sign that is larger.

    Parameters
    ----------
    spline : covers the start of the samples
    first : the first control rotation of the segment from which on the spline may change
    fixed : number of control rotations, from `first` on, that stay
    samples : rotations from a knot of the spline to a later one
    """
    first = min(first, round((samples.start_ns - spline.start_ns) / spline.step_ns))
    start_ns = spline.start_ns + first * spline.step_ns
    known_ns = np.arange(start_ns, samples.start_ns, spline.step_ns // _KNOWN_PER_STEP, dtype=np.int64)
    both = RotationTrajectory(
        np.concatenate([known_ns, samples.t_ns]),
        np.concatenate([spline.quaternions_at(known_ns), samples.quaternions_xyzw]),
    )
    continued = fit_spline(
        both,
        order=spline.order,
        start_ns=start_ns,
        step_ns=spline.step_ns,
        count=round((samples.end_ns - start_ns) / spline.step_ns) + spline.order - 1,
        fixed_xyzw=spline.quaternions_xyzw[first : first + fixed],
    )
    return replace(
        spline, quaternions_xyzw=np.concatenate([spline.quaternions_xyzw[:first], continued.quaternions_xyzw])
    )


def _guess(
    samples: RotationTrajectory, order: int, start_ns: int, step_ns: int, count: int, fixed: FloatArray
) -> FloatArray:
    """Return control rotations (K, 4): the fixed ones, then the samples interpolated, continued at their end's rate."""
    times = start_ns + (np.arange(len(fixed), count, dtype=np.int64) - (order // 2 - 1)) * step_ns
    within = np.clip(times, samples.start_ns, samples.end_ns)
    # The rates at the two ends are means over one step, as neighbouring samples may be close in time and noisy.
    ends = np.array([samples.start_ns, samples.end_ns], np.int64)
    inner = np.array([min(ends[0] + step_ns, ends[1]), max(ends[1] - step_ns, ends[0])], np.int64)
    outer, inward = samples.rotation_at(ends), samples.rotation_at(inner)
    rates_per_ns = (outer.inv() * inward).as_rotvec() / (inner - ends)[:, None].astype(np.float64)
    side = np.where(times < samples.start_ns, 0, 1)
    beyond = Rotation.from_rotvec(rates_per_ns[side] * (times - within)[:, None].astype(np.float64))
    return np.concatenate([fixed, (samples.rotation_at(within) * beyond).as_quat().reshape(-1, 4)])
