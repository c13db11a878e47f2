"""The errors as CMax-SLAM's paper and those that compare with it print them (Guo and Gallego, T-RO 2024, section IV).

The estimate is aligned at one instant, sampled at 50 Hz over the first 30 s, and compared with a ground truth that has
gone through a Gaussian low pass. That filter alone takes something from a fast motion, so the figures come with their
floor, which is what a perfect estimate has, and with those of the unfiltered ground truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.evaluation.rotation_errors import absolute_errors_deg, relative_errors_deg_s, rms
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory

ALIGN_AT_S = 1.0  # on real recordings; on synthetic ones 0.1
_FIRST_S = 30.0
_RATE_HZ = 50
_RELATIVE_STEP_S, _RELATIVE_EVERY_S = 1.0, 0.1
_LOW_PASS_S = 0.05  # the filter's standard deviation
_REACH = 3  # standard deviations after which the filter's weights are cut off


@dataclass(frozen=True)
class CmaxSlamErrors:
    """Abs in degrees and Rel in deg/s, as published; None where a recording is too short for Rel.

    Attributes
    ----------
    align_at_s : float
        The instant of the alignment, from the first event.
    duration_s : float
        Time that is compared.
    abs_deg, rel_deg_s : float
        Against the filtered ground truth: the published figures.
    abs_floor_deg, rel_floor_deg_s : float
        Those of the unfiltered ground truth itself: what a perfect estimate has.
    abs_unfiltered_deg, rel_unfiltered_deg_s : float
        Against the ground truth as it is.
    """

    align_at_s: float
    duration_s: float
    abs_deg: float
    rel_deg_s: float | None
    abs_floor_deg: float
    rel_floor_deg_s: float | None
    abs_unfiltered_deg: float
    rel_unfiltered_deg_s: float | None


def cmax_slam_errors(
    estimate: RotationTrajectory,
    ground_truth: RotationTrajectory,
    origin_ns: int,
    align_at_s: float = ALIGN_AT_S,
) -> CmaxSlamErrors | None:
    """Return the published errors; None where estimate and ground truth do not share the instant of the alignment.

    Parameters
    ----------
    estimate, ground_truth : RotationTrajectory
        Both on the same clock.
    origin_ns : int
        Time of the first event.
    align_at_s : float
        The instant of the alignment, from the first event.
    """
    step_ns, align_ns = NS_PER_S // _RATE_HZ, origin_ns + round(align_at_s * NS_PER_S)
    t_ns = origin_ns + step_ns * np.arange(round(_FIRST_S * _RATE_HZ), dtype=np.int64)
    t_ns = t_ns[estimate.covers(t_ns) & ground_truth.covers(t_ns)]
    if len(t_ns) < 2 or not (t_ns[0] <= align_ns <= t_ns[-1]):
        return None
    sampled = RotationTrajectory.from_rotations(t_ns, estimate.rotation_at(t_ns))
    reach_ns = round((_REACH + 1) * _LOW_PASS_S * NS_PER_S)
    near = ground_truth.covering(int(t_ns[0]) - reach_ns, int(t_ns[-1]) + reach_ns)
    filtered = low_pass(near, _LOW_PASS_S)
    found = _errors(sampled, filtered, align_ns)
    floor = _errors(RotationTrajectory.from_rotations(t_ns, near.rotation_at(t_ns)), filtered, align_ns)
    unfiltered = _errors(sampled, near, align_ns)
    return CmaxSlamErrors(align_at_s, (sampled.end_ns - sampled.start_ns) / NS_PER_S, *found, *floor, *unfiltered)


def low_pass(trajectory: RotationTrajectory, sigma_s: float) -> RotationTrajectory:
    """Return a trajectory whose poses are Gaussian means of those around them.

    `R_k exp(sum_j w_kj log(R_k^T R_j))`, with weights that belong to the time between poses, `w_kj` proportional to
    `exp(-(t_j - t_k)^2 / 2 sigma^2)` times the time for which pose `j` stands.
    """
    t_ns, reach_ns = trajectory.t_ns, round(_REACH * sigma_s * NS_PER_S)
    t_s = (t_ns - trajectory.start_ns) / NS_PER_S
    stands_s = np.gradient(t_s)
    first = np.searchsorted(t_ns, t_ns - reach_ns)
    last = np.searchsorted(t_ns, t_ns + reach_ns, side="right")
    turned: FloatArray = np.zeros((len(t_s), 3))
    total: FloatArray = np.zeros(len(t_s))
    index: npt.NDArray[np.intp] = np.arange(len(t_s))
    for offset in range(int((first - index).min()), int((last - index).max())):
        place = index[(index + offset >= first) & (index + offset < last)]
        there = place + offset
        weight = stands_s[there] * np.exp(-0.5 * ((t_s[there] - t_s[place]) / sigma_s) ** 2)
        steps = (trajectory.rotations[place].inv() * trajectory.rotations[there]).as_rotvec()
        turned[place] += weight[:, None] * steps
        total[place] += weight
    means = trajectory.rotations * Rotation.from_rotvec(turned / total[:, None])
    return RotationTrajectory.from_rotations(trajectory.t_ns, means)


def _errors(sampled: RotationTrajectory, ground_truth: RotationTrajectory, align_ns: int) -> tuple[float, float | None]:
    """Return Abs and Rel: `R'_k = R_gt(t0) R_est(t0)^T R_est,k` against `R_gt,k`, and over 1 s from every 0.1 s."""
    alignment = ground_truth.rotation_at(align_ns) * sampled.rotation_at(align_ns).inv()
    absolute = absolute_errors_deg(ground_truth.rotation_at(sampled.t_ns), sampled.rotations, alignment)
    every = round(_RELATIVE_EVERY_S * _RATE_HZ)
    relative = relative_errors_deg_s(sampled, ground_truth, _RELATIVE_STEP_S)[::every]
    return rms(absolute), rms(relative) if len(relative) else None
