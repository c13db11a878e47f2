"""Trust: what became of a run as a whole and of its windows, with the reasons in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.frontend.rotation_check import RotationResidual

# Part of the image's motion that a rotation may leave. Rotations leave 0 to 0.02, simulated or real; translations of
# the Event Camera Dataset 0.09 to 0.35.
MOST_UNEXPLAINED = 0.06
_NEAR_NS = 600_000_000  # residuals up to this far from a window's middle speak for it
_FEWEST_NEAR = 3
_SIGMA_OF_MEDIAN = 1.25 * 1.48  # times the median deviation, over the root of the number, is a median's standard error


def unexplained_motion(residuals: Sequence[RotationResidual]) -> float | None:
    """Return the part of the image's motion that no rotation explains, by the packets; None without any.

    Of the packets' shares of squares the median is taken, which leaves out what passes before the camera for a moment,
    less two of its standard errors: what the packets do not agree on is noise.
    """
    if not residuals:
        return None
    shares = np.array([one.unexplained / one.motion for one in residuals])
    median = np.median(shares)
    spread = _SIGMA_OF_MEDIAN * np.median(np.abs(shares - median)) / np.sqrt(len(shares))
    return float(np.sqrt(max(median - 2 * spread, 0.0)))


def mark_windows(windows: list[WindowReport], residuals: Sequence[RotationResidual]) -> list[WindowReport]:
    """Return the windows, with those marked around which a rotation does not explain the motion.

    All of them are where the recording as a whole is none.
    """
    times_ns = np.array([one.t_ns for one in residuals], np.int64)
    whole = unexplained_motion(residuals) or 0.0
    marked = []
    for window in windows:
        middle_ns = (window.start_ns + window.end_ns) // 2
        near = np.flatnonzero(np.abs(times_ns - middle_ns) <= _NEAR_NS).tolist()
        share = (unexplained_motion([residuals[n] for n in near]) or 0.0) if len(near) >= _FEWEST_NEAR else whole
        share = max(share, whole) if whole > MOST_UNEXPLAINED else share
        if window.tracking.is_in_map and share > MOST_UNEXPLAINED:
            reason = f"a rotation leaves {share:.0%} of the image's motion unexplained"
            window = replace(window, tracking=Tracking.NOT_A_ROTATION, reason=reason)
        marked.append(window)
    return marked


def overall(windows: Sequence[WindowReport], unexplained: float | None) -> tuple[Tracking, str]:
    """Return one of the words of windows for a run as a whole, and the reason."""
    count = len(windows)

    def part(tracking: Tracking) -> int:
        return sum(window.tracking is tracking for window in windows)

    lost, still, found = (part(word) for word in (Tracking.LOST, Tracking.STILL, Tracking.FOUND_AGAIN))
    if unexplained is not None and unexplained > MOST_UNEXPLAINED:
        return (
            Tracking.NOT_A_ROTATION,
            f"a rotation leaves {unexplained:.0%} of the image's motion unexplained, where {MOST_UNEXPLAINED:.0%} is "
            "the most of a camera that only turns: the orientation is not to be trusted",
        )
    other = part(Tracking.NOT_A_ROTATION)
    if lost and (2 * lost > count or windows[-1].tracking is Tracking.LOST):
        return Tracking.LOST, f"{lost} of {count} windows do not match the map"
    if still == count:
        reasons = Counter(window.reason for window in windows)
        return Tracking.STILL, f"no window shows a motion: {reasons.most_common(1)[0][0]}"
    elsewhere = f"in {other} of {count} windows no rotation explains the image's motion"
    if 4 * other > count:
        return Tracking.NOT_A_ROTATION, elsewhere
    if found:
        return Tracking.FOUND_AGAIN, f"found again in the map {found} times; {lost} of {count} windows are lost"
    if lost or other:
        parts = [f"{lost} of {count} windows are lost"] * bool(lost) + [elsewhere] * bool(other)
        return Tracking.TRACKED, "but " + ", and ".join(parts)
    return Tracking.TRACKED, f"all {count} windows agree with the map" + (f" or are still ({still})" if still else "")
