"""An estimated trajectory against the ground truth: all error figures at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.evaluation.alignment import align_best_fit, align_first_pose, best_time_offset
from cmaxslam_fbp.evaluation.cmax_slam_metric import ALIGN_AT_S, CmaxSlamErrors, cmax_slam_errors
from cmaxslam_fbp.evaluation.rotation_errors import (
    absolute_errors_deg,
    angular_velocity_errors,
    relative_errors_deg_s,
    rms,
)
from cmaxslam_fbp.evaluation.translation_errors import position_errors
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

RELATIVE_STEPS_S = (0.01, 0.1, 1.0)

_YEAR_S = 3.15e7


@dataclass(frozen=True)
class Evaluation:
    """The errors of an estimated trajectory. Units are in the names; None stands where a figure does not exist.

    Attributes
    ----------
    poses : int
        Number of the estimate's poses compared.
    start_s, duration_s : float
        First compared pose, in seconds from the origin (see `evaluate`), and time from it to the last one.
    overlap_of_estimate : float
        Fraction of the estimate's poses in the chosen time range that the ground truth covers.
    overlap_of_ground_truth : float
        Fraction of the ground truth's time in the chosen time range that the compared poses span.
    estimate_step_s, ground_truth_step_s : float
        Median time between poses. Relative errors over less than the estimate's measure its interpolation.
    ground_truth_longest_gap_s : float
        Longest time between two poses of the ground truth in the compared range: there it is a guess.
    absolute_first_pose_*_deg, absolute_best_fit_*_deg
        Of the angles of `R_gt^T A R_est`, with `A` from the first compared pose or as the best fit.
    absolute_at_time_offset_rms_deg, time_offset_s
        The best fit at the best constant time offset (positive: the estimate lags), see `alignment`.
    relative_rms_deg_s, relative_pairs, relative_interpolated : dict
        For each `dt` ("0.01", "0.1", "1"): RMS angle between the relative rotations over `dt`, per second; the
        number of pairs; and whether the estimate's poses are further apart than `dt`.
    angular_velocity_rms_deg_s, angular_velocity_rms_per_axis_deg_s : float
        RMS of the length of the difference of the body rates, and root of its mean square over times and axes.
    angular_velocity_reference : str
        What the body rates were compared with.
    position_rms_m, position_path_rms_m, position_scale
        Of positions, after the best-fitting similarity, where both have them: see `translation_errors`.
    cmax_slam : CmaxSlamErrors or None
        The figures as they are published, see `cmax_slam_metric`.
    """

    poses: int
    start_s: float
    duration_s: float
    overlap_of_estimate: float
    overlap_of_ground_truth: float
    estimate_step_s: float
    ground_truth_step_s: float
    ground_truth_longest_gap_s: float
    absolute_first_pose_rms_deg: float
    absolute_first_pose_median_deg: float
    absolute_first_pose_max_deg: float
    absolute_best_fit_rms_deg: float
    absolute_best_fit_median_deg: float
    absolute_best_fit_max_deg: float
    time_offset_s: float | None
    absolute_at_time_offset_rms_deg: float | None
    relative_rms_deg_s: dict[str, float | None]
    relative_pairs: dict[str, int]
    relative_interpolated: dict[str, bool]
    angular_velocity_rms_deg_s: float
    angular_velocity_rms_per_axis_deg_s: float
    angular_velocity_reference: Literal["ground truth", "gyroscope"]
    position_rms_m: float | None = None
    position_path_rms_m: float | None = None
    position_scale: float | None = None
    cmax_slam: CmaxSlamErrors | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers for JSON: no NaN, None where a figure does not exist."""
        return asdict(self)


def evaluate(
    estimate: RotationTrajectory,
    ground_truth: RotationTrajectory,
    *,
    start_s: float | None = None,
    duration_s: float | None = None,
    origin_ns: int | None = None,
    reference_velocities: AngularVelocities | None = None,
    align_at_s: float = ALIGN_AT_S,
) -> Evaluation:
    """Compare an estimate with the ground truth at the estimate's times, where the ground truth covers them.

    Parameters
    ----------
    estimate, ground_truth : RotationTrajectory
        Both on the same clock. The ground truth is interpolated (slerp) to the estimate's times.
    start_s, duration_s : float, optional
        Compare only the estimate's poses in `start_s <= t < start_s + duration_s`, in seconds from the origin.
        By default all.
    origin_ns : int, optional
        The time from which `start_s` counts: by default the estimate's first pose. A caller that knows the
        recording gives the time of its first event.
    reference_velocities : AngularVelocities, optional
        A gyroscope in the camera's axes: the reference of the angular velocity instead of the ground truth's.
    align_at_s : float
        Where the published figures align the trajectories, in seconds after `start_s`.
    """
    origin_ns = estimate.start_ns if origin_ns is None else origin_ns
    first_ns, last_ns = _time_range(start_s, duration_s, origin_ns)
    chosen = (estimate.t_ns >= first_ns) & (estimate.t_ns < last_ns)
    compared = chosen & ground_truth.covers(estimate.t_ns)
    if compared.sum() < 2:
        raise TrajectoryError(_why_nothing_to_compare(estimate, ground_truth, first_ns, last_ns))

    path = None if estimate.positions_m is None else estimate.positions_m[compared]
    cut = RotationTrajectory(estimate.t_ns[compared], estimate.quaternions_xyzw[compared], path)
    positions = position_errors(cut, ground_truth)
    truth = ground_truth.rotation_at(cut.t_ns)
    first_pose_deg = absolute_errors_deg(truth, cut.rotations, align_first_pose(truth, cut.rotations))
    best_fit_deg = np.degrees(align_best_fit(truth, cut.rotations)[1])
    offset = best_time_offset(cut, ground_truth)
    relative = {f"{dt:g}": relative_errors_deg_s(cut, ground_truth, dt) for dt in RELATIVE_STEPS_S}
    reference = ground_truth if reference_velocities is None else reference_velocities
    velocity = angular_velocity_errors(estimate, reference, cut.t_ns)
    step_s = float(np.median(np.diff(cut.t_ns))) / NS_PER_S
    published_ns = origin_ns if start_s is None else first_ns
    truth_span_ns = min(ground_truth.end_ns, last_ns) - max(ground_truth.start_ns, first_ns)
    return Evaluation(
        poses=len(cut),
        start_s=(cut.start_ns - origin_ns) / NS_PER_S,
        duration_s=(cut.end_ns - cut.start_ns) / NS_PER_S,
        overlap_of_estimate=float(compared.sum() / chosen.sum()),
        overlap_of_ground_truth=(cut.end_ns - cut.start_ns) / truth_span_ns,
        estimate_step_s=step_s,
        ground_truth_step_s=float(np.median(np.diff(ground_truth.t_ns)) / NS_PER_S),
        ground_truth_longest_gap_s=_longest_gap_s(ground_truth, cut),
        absolute_first_pose_rms_deg=rms(first_pose_deg),
        absolute_first_pose_median_deg=float(np.median(first_pose_deg)),
        absolute_first_pose_max_deg=float(first_pose_deg.max()),
        absolute_best_fit_rms_deg=rms(best_fit_deg),
        absolute_best_fit_median_deg=float(np.median(best_fit_deg)),
        absolute_best_fit_max_deg=float(best_fit_deg.max()),
        time_offset_s=None if offset is None else offset.offset_s,
        absolute_at_time_offset_rms_deg=None if offset is None else offset.rms_deg,
        relative_rms_deg_s={dt: rms(errors) if len(errors) else None for dt, errors in relative.items()},
        relative_pairs={dt: len(errors) for dt, errors in relative.items()},
        relative_interpolated={dt: float(dt) < 0.999 * step_s for dt in relative},
        angular_velocity_rms_deg_s=velocity.rms_deg_s,
        angular_velocity_rms_per_axis_deg_s=velocity.rms_per_axis_deg_s,
        angular_velocity_reference="ground truth" if reference_velocities is None else "gyroscope",
        position_rms_m=None if positions is None else positions.rms_m,
        position_path_rms_m=None if positions is None else positions.path_rms_m,
        position_scale=None if positions is None else positions.scale,
        cmax_slam=cmax_slam_errors(cut, ground_truth, published_ns, align_at_s),
    )


def _time_range(start_s: float | None, duration_s: float | None, origin_ns: int) -> tuple[int, int]:
    """Return the half-open range of nanoseconds to compare; without limits, all that int64 can hold."""
    if duration_s is not None and not duration_s > 0:
        raise TrajectoryError(f"the duration to compare is {duration_s} s; it must be positive")
    if start_s is None and duration_s is None:
        return np.iinfo(np.int64).min, np.iinfo(np.int64).max
    first_ns = origin_ns + round((start_s or 0.0) * NS_PER_S)
    if duration_s is None:
        return first_ns, np.iinfo(np.int64).max
    return first_ns, first_ns + round(duration_s * NS_PER_S)


def _longest_gap_s(ground_truth: RotationTrajectory, compared: RotationTrajectory) -> float:
    """Return the longest step of the ground truth that touches the range of the compared poses."""
    before = np.searchsorted(ground_truth.t_ns, compared.start_ns, side="right") - 1
    after = np.searchsorted(ground_truth.t_ns, compared.end_ns, side="left")
    return float(np.diff(ground_truth.t_ns[before : after + 1]).max() / NS_PER_S)


def _why_nothing_to_compare(
    estimate: RotationTrajectory, ground_truth: RotationTrajectory, first_ns: int, last_ns: int
) -> str:
    """Return one line with both time ranges and the likely cause."""
    ranges = (
        f"the estimate covers {estimate.start_ns / NS_PER_S:.3f} to {estimate.end_ns / NS_PER_S:.3f} s, "
        f"the ground truth {ground_truth.start_ns / NS_PER_S:.3f} to {ground_truth.end_ns / NS_PER_S:.3f} s"
    )
    apart_s = max(ground_truth.start_ns - estimate.end_ns, estimate.start_ns - ground_truth.end_ns) / NS_PER_S
    if apart_s > _YEAR_S:
        cause = "their clocks differ (one counts from zero, the other from 1970?): shift one of them"
    elif apart_s > 0:
        cause = "they do not overlap: check that both belong to the same recording and count from the same zero"
    else:
        chosen = ((estimate.t_ns >= first_ns) & (estimate.t_ns < last_ns)).sum()
        cause = (
            f"the start and duration leave {chosen} poses: check them"
            if chosen < len(estimate)
            else ("too few poses of the estimate lie within the ground truth")
        )
    return f"fewer than two poses can be compared: {ranges}; {cause}"
