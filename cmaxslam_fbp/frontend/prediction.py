"""The velocity to start from: the last ones carried on."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.nanoseconds import NS_PER_S

_LONGEST_NS = 200_000_000  # after a longer gap the last velocity says nothing
_MAX_STRETCH = 2.0  # the change is carried on over at most so many times the time in which it was seen


class Prediction:
    """Carries the last two velocities on along a straight line; the last one as it is where there are no two."""

    def __init__(self) -> None:
        self._times_ns: list[int] = []
        self._velocities: list[FloatArray] = []

    @property
    def last(self) -> FloatArray | None:
        """The last velocity; None where nothing is known."""
        return self._velocities[-1] if self._velocities else None

    def at(self, t_ns: int) -> FloatArray | None:
        """Return the velocity to expect at a time; None where nothing is known."""
        if not self._velocities or abs(t_ns - self._times_ns[-1]) > _LONGEST_NS:
            return None
        if len(self._velocities) < 2 or self._times_ns[1] <= self._times_ns[0]:
            return self._velocities[-1]
        stretch = (t_ns - self._times_ns[1]) / (self._times_ns[1] - self._times_ns[0])
        change = self._velocities[1] - self._velocities[0]
        return self._velocities[1] + min(max(stretch, 0.0), _MAX_STRETCH) * change

    def add(self, t_ns: int, velocity: FloatArray, *, continues: bool = True) -> None:
        """Take in the velocity found at a time; one that does not continue those before makes it forget them."""
        kept = 1 if continues else 0
        self._times_ns = [*self._times_ns[len(self._times_ns) - kept :], t_ns]
        self._velocities = [*self._velocities[len(self._velocities) - kept :], velocity]

    def change_over(self, t_ns: int, velocity: FloatArray, duration_s: float) -> float:
        """Return by how much the velocity changes over a duration, at its rate of change since the last one."""
        if not self._velocities or abs(t_ns - self._times_ns[-1]) > _LONGEST_NS or t_ns == self._times_ns[-1]:
            return 0.0
        since_s = abs(t_ns - self._times_ns[-1]) / NS_PER_S
        return float(np.linalg.norm(velocity - self._velocities[-1])) * duration_s / since_s
