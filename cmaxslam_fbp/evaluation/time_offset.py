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
