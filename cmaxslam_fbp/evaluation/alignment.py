"""What an estimate cannot know, or knows badly: the rotation of its world and a constant offset of its clock.

A world is known only up to a rotation `A` on the left: `A R_est` is compared with `R_gt`. Of clocks, with the offset
`tau` the estimate's pose stamped `t` is compared with the ground truth at `t - tau`. A positive offset means that the
estimate lags: it shows an orientation `tau` after the camera had it, as events lag the edges that cause them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.evaluation.rotation_errors import rms
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.geometry.so3 import left_jacobian_inverse
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory

MAX_OFFSET_S = 0.005

_MAX_ITERATIONS = 100
_LAST_STEP_RAD = 1e-7  # Newton's method squares the error: what is left after such a step is rounding
_SMALLEST_STEP_RAD = 1e-15
_BLOCK = 10_000  # poses of a long recording at a time: matrices of all would be what takes the most memory
_ROUNDING = 1e-12  # of the cost: the last steps change it by less
_GRID_STEP_S = 0.0025
_TOLERANCE_S = 1e-7
_NO_DIFFERENCE_DEG = 1e-9  # a smaller change of the error over the whole range is rounding


def align_first_pose(ground_truth: Rotation, estimate: Rotation) -> Rotation:
    """Return `A = R_gt,0 R_est,0^T`, with which the first of the N poses agree."""
    return ground_truth[0] * estimate[0].inv()


def align_best_fit(ground_truth: Rotation, estimate: Rotation) -> tuple[Rotation, FloatArray]:
    """Return the `A` that minimises the sum of squared angles of `R_gt^T A R_est`, and these angles (N,) in rad.

    The angle of `R_gt^T A R_est` is that of `A^T D` with `D = R_gt R_est^T`: `A` is the geodesic mean of the
    `D`. Newton's method starts at their chordal mean, the minimiser of `sum |A - D|_F^2`. The mean is unique
    when all `D` lie within 90 degrees of it (Karcher); beyond that it is also sought from the first `D`
    and the better of the two is returned, so that the best fit is never worse than the first pose's.
    """
    offsets = ground_truth * estimate.inv()
    best, residuals = _refine(offsets.mean(), offsets)
    if np.linalg.norm(residuals, axis=1).max() >= np.pi / 2:
        other, other_residuals = _refine(align_first_pose(ground_truth, estimate), offsets)
        if (other_residuals**2).sum() < (residuals**2).sum():
            best, residuals = other, other_residuals
    return best, np.linalg.norm(residuals, axis=1)


def _refine(alignment: Rotation, offsets: Rotation) -> tuple[Rotation, FloatArray]:
    """Return the minimiser of `sum |log(A^T D)|^2 / 2` near the given `A`, with its residuals (N, 3).

    With `A exp(d)` and `r = log(A^T D)`, the gradient at `d = 0` is `-sum r` and the Hessian the sum of the
    symmetric parts of `J_l^-1(r)`, because `log(exp(-d) exp(r)) = r - J_l^-1(r) d` and `J_l^-T(r) r = r`.
    """
    residuals = _residuals(alignment, offsets)
    cost = (residuals**2).sum()
    for _ in range(_MAX_ITERATIONS):
        hessian = np.zeros((3, 3))
        for first in range(0, len(residuals), _BLOCK):
            hessian += left_jacobian_inverse(residuals[first : first + _BLOCK]).sum(axis=0)
        step = np.linalg.solve(hessian + hessian.T, 2 * residuals.sum(axis=0))
        length = np.linalg.norm(step)
        while length > _SMALLEST_STEP_RAD:
            candidate = alignment * Rotation.from_rotvec(step)
            candidate_residuals = _residuals(candidate, offsets)
            candidate_cost = (candidate_residuals**2).sum()
            if candidate_cost <= cost * (1 + _ROUNDING):
                break
            step, length = step / 2, length / 2
        else:
            break
        alignment, residuals, cost = candidate, candidate_residuals, candidate_cost
        if length < _LAST_STEP_RAD:
            break
    return alignment, residuals


def _residuals(alignment: Rotation, offsets: Rotation) -> FloatArray:
    """Return `log(A^T D)` (N, 3)."""
    inverse, residuals = alignment.inv(), np.empty((len(offsets), 3))
    for first in range(0, len(offsets), _BLOCK):
        residuals[first : first + _BLOCK] = (inverse * offsets[first : first + _BLOCK]).as_rotvec()
    return residuals


@dataclass(frozen=True)
class TimeOffset:
    """The best offset `offset_s` in seconds, and the absolute error `rms_deg` (best fit) at it."""

    offset_s: float
    rms_deg: float


def best_time_offset(
    estimate: RotationTrajectory, ground_truth: RotationTrajectory, *, max_offset_s: float = MAX_OFFSET_S
) -> TimeOffset | None:
    """Minimise the absolute error (RMS angle, best fit) over offsets within `max_offset_s` seconds.

    All offsets are judged on the same poses: those that the ground truth covers at every offset of the range.
    None where these are fewer than two, or where the motion does not tell offsets apart (none at all, or a
    constant rate about one axis, whose delay is a rotation of the world).
    """
    reach_ns = round(max_offset_s * NS_PER_S)
    inside = ground_truth.covers(estimate.t_ns - reach_ns) & ground_truth.covers(estimate.t_ns + reach_ns)
    if inside.sum() < 2:
        return None
    t_ns, rotations = estimate.t_ns[inside], estimate.rotations[inside]

    def mean_square(offset_s: float) -> float:
        shifted = ground_truth.rotation_at(t_ns - round(offset_s * NS_PER_S))
        return rms(np.degrees(align_best_fit(shifted, rotations)[1])) ** 2

    grid = np.linspace(-max_offset_s, max_offset_s, 2 * max(1, round(max_offset_s / _GRID_STEP_S)) + 1)
    squares = np.array([mean_square(offset) for offset in grid])
    if np.ptp(np.sqrt(squares)) < _NO_DIFFERENCE_DEG:
        return None
    square, offset = min(zip(squares, grid, strict=True))
    step_s = _GRID_STEP_S
    while step_s > _TOLERANCE_S:
        # The vertex of the parabola through the best offset and its neighbours; at the ends of the range there is none.
        before, after = (max(-max_offset_s, offset - step_s), min(max_offset_s, offset + step_s))
        sides = [(mean_square(before), before), (mean_square(after), after)]
        bend = sides[0][0] - 2 * square + sides[1][0]
        vertex = offset + step_s / 2 * (sides[0][0] - sides[1][0]) / bend if bend > 0 else offset
        vertex = min(max(vertex, before), after)
        square, offset = min((square, offset), *sides, (mean_square(vertex), vertex))
        step_s /= 10
    return TimeOffset(float(offset), float(np.sqrt(square)))
