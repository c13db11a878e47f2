"""The constant time offset with which an estimate fits the ground truth best.

Sign, once and for all: with the offset `tau`, the estimate's pose stamped `t` is compared with the ground
truth at `t - tau`. A positive offset means that the estimate lags: it shows an orientation `tau` after the
camera had it, as events lag the edges that cause them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.evaluation.alignment import align_best_fit
from cmaxslam_fbp.evaluation.rotation_errors import rms
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory

MAX_OFFSET_S = 0.005

_GRID_STEP_S = 0.0025
_TOLERANCE_S = 1e-7
_NO_DIFFERENCE_DEG = 1e-9  # a smaller change of the error over the whole range is rounding


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
    from scipy.optimize import minimize_scalar

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
    best = int(np.argmin(squares))
    found = minimize_scalar(
        mean_square,
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]),
        method="bounded",
        options={"xatol": _TOLERANCE_S},
    )
    # The grid's own minimum wins where the curve has none inside, as at the ends of the range.
    offset, square = (found.x, found.fun) if found.fun < squares[best] else (grid[best], squares[best])
    return TimeOffset(float(offset), float(np.sqrt(square)))
