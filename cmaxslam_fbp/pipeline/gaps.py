"""Gaps: long times without events.

A run works on a clock of its own, on which a gap lasts a few seconds: nothing that it does grows with the gap. Its
results are on the recording's clock, and say nothing of the time inside a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import LONGEST_SILENCE_NS
from cmaxslam_fbp.pipeline.time_lapse import TimeLapse
from cmaxslam_fbp.trajectory.position_spline import PositionSpline
from cmaxslam_fbp.trajectory.spline import RotationSpline


@dataclass(frozen=True, eq=False)
class Stretch:
    """Time without a gap, and the camera's motion then: all times are the recording's.

    Attributes
    ----------
    start_ns, end_ns : int
        The first event, and the last one.
    spline : RotationSpline
        `R_wc` on the clock of the run.
    path : PositionSpline or None
        The camera's positions on that clock, where they are estimated.
    lapse : TimeLapse
        How that clock goes.
    removed_ns : int
        What was taken out of the recording's time before.
    """

    start_ns: int
    end_ns: int
    spline: RotationSpline
    path: PositionSpline | None
    lapse: TimeLapse
    removed_ns: int

    @property
    def known_ns(self) -> int:
        """The last time with an orientation: that of the last event, or a little before it."""
        return min(self.end_ns, int(self.lapse.to_recording(self.spline.end_ns)) + self.removed_ns)

    def covers(self, t_ns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which of the times the trajectory has a value at."""
        return self.spline.covers(self._run_ns(t_ns))

    def quaternions_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` at a time or times as unit quaternions `xyzw` (..., 4)."""
        return self.spline.quaternions_at(self._run_ns(t_ns))

    def rotations_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` at a time or times as matrices (..., 3, 3)."""
        return self.spline.rotations_at(self._run_ns(t_ns))

    def angular_velocities_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return the body-frame angular velocity (..., 3) in rad/s: `omega(t) = omega(tau) / lapse`."""
        tau_ns = self._run_ns(t_ns)
        return self.spline.angular_velocities_at(tau_ns) / self.lapse.lapses_at(tau_ns)[..., None]

    def positions_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return the positions (T, 3) at times (T,)."""
        if self.path is None:
            raise TrajectoryError("the camera's positions were not estimated")
        return self.path.positions_at(self._run_ns(t_ns))

    def own_spline(self) -> RotationSpline:
        """Return the trajectory of this stretch alone as a spline on the recording's clock, where no time lapses."""
        step_ns, run_ns = self.spline.step_ns, self.spline.start_ns + self.removed_ns
        first = (self.start_ns - run_ns) // step_ns
        segments = max(-(-(self.known_ns - run_ns) // step_ns) - first, 1)
        part = self.spline.part(first, segments + self.spline.order - 1)
        return replace(part, start_ns=part.start_ns + self.removed_ns)

    def _run_ns(self, t_ns: npt.ArrayLike) -> IntArray:
        return self.lapse.to_run(np.asarray(t_ns, np.int64) - self.removed_ns)


class RunClock:
    """The clock of a run, on which no gap is longer than `LONGEST_SILENCE_NS` and a stride.

    Events go on after a gap a whole number of strides after the first event of all: where a window starts, and a knot
    of the trajectory is.

    Parameters
    ----------
    stride_ns : by how much windows move
    lapse : how this clock goes between gaps
    """

    def __init__(self, stride_ns: int, lapse: TimeLapse | None = None) -> None:
        self._stride_ns, self._lapse = stride_ns, lapse or TimeLapse()
        self._first_ns: int | None = None
        self._last_ns = 0
        # Of each gap, on the clock of the run: its ends, and how much was taken out up to its end.
        self._gaps: list[tuple[int, int, int]] = []

    def shorten(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the events without the gaps; their times between them are the recording's."""
        for events in chunks:
            yield self._shift(events) if len(events) else events

    def _shift(self, events: Events) -> Events:
        if self._first_ns is None:
            self._first_ns = self._last_ns = int(events.t_ns[0])
        removed_ns = self._gaps[-1][2] if self._gaps else 0
        t_ns = events.t_ns - removed_ns if removed_ns else events.t_ns
        before_ns, self._last_ns = self._last_ns, int(t_ns[-1])
        if self._last_ns - before_ns <= LONGEST_SILENCE_NS:
            return replace(events, t_ns=t_ns) if removed_ns else events
        t_ns = t_ns.copy()
        for place in np.flatnonzero(np.diff(t_ns, prepend=before_ns) > LONGEST_SILENCE_NS).tolist():
            start_ns = int(t_ns[place - 1]) if place else before_ns
            wanted_ns = start_ns + LONGEST_SILENCE_NS - self._first_ns
            end_ns = self._first_ns - (-wanted_ns // self._stride_ns) * self._stride_ns
            surplus_ns = int(t_ns[place]) - end_ns
            if surplus_ns > 0:
                removed_ns += surplus_ns
                t_ns[place:] -= surplus_ns
                self._gaps.append((start_ns, end_ns, removed_ns))
        self._last_ns = int(t_ns[-1])
        return replace(events, t_ns=t_ns)

    def to_recording(self, t_ns: npt.ArrayLike) -> IntArray:
        """Return times of this clock on that of the recording."""
        times = self._lapse.to_recording(t_ns)
        gaps = list(self._gaps)  # the frontend's thread may add to them
        removed_ns = np.array([0, *(removed for _, _, removed in gaps)], np.int64)
        return times + removed_ns[np.searchsorted([end for _, end, _ in gaps], times, side="right")]

    def stretches(
        self, spline: RotationSpline, start_ns: int, end_ns: int, path: PositionSpline | None = None
    ) -> tuple[Stretch, ...]:
        """Cut a trajectory on this clock, of events from `start_ns` to `end_ns`, at the gaps."""
        found, removed_ns = [], 0
        start_ns, end_ns, known_ns = self._lapse.to_recording([start_ns, end_ns, spline.end_ns]).tolist()
        for gap_ns, next_ns, next_removed_ns in [*self._gaps, (end_ns, end_ns + 1, 0)]:
            last_ns = min(gap_ns, end_ns) + removed_ns
            found.append(Stretch(start_ns + removed_ns, last_ns, spline, path, self._lapse, removed_ns))
            if next_ns > end_ns or next_ns >= known_ns:
                break
            start_ns, removed_ns = next_ns, next_removed_ns
        return tuple(found)
