"""The velocity to start from: the last ones carried on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_LONGEST_NS = 200_000_000  # after a longer gap the last velocity says nothing
_MAX_STRETCH = 2.0  # the change is carried on over at most so many times the time in which it was seen


class Prediction:
    """Carries the last two velocities on along a straight line; only the last one where there are no two."""

    def __init__(self) -> None:
        self._times_ns: list[int] = []
        self._velocities: list[FloatArray] = []

    @property
    def last(self) -> FloatArray | None:
        """The last velocity."""
        return self._velocities[-1] if self._velocities else None

    def at(self, t_ns: int) -> FloatArray | None:
        """Return the velocity to expect at a time; None where nothing is known."""
        if not self._velocities or abs(t_ns - self._times_ns[-1]) > _LONGEST_NS:
            return None
        if len(self._velocities) < 2 or self._times_ns[-1] <= self._times_ns[0]:
            return self._velocities[-1]
        stretch = (t_ns - self._times_ns[1]) / (self._times_ns[1] - self._times_ns[0])
        change = self._velocities[1] - self._velocities[0]
        return self._velocities[1] + min(max(stretch, 0.0), _MAX_STRETCH) * change

    def add(self, t_ns: int, velocity: FloatArray) -> None:
        """Take in the velocity found at a time."""
        self._times_ns = [*self._times_ns[-1:], t_ns]
        self._velocities = [*self._velocities[-1:], velocity]

    def restart(self, t_ns: int, velocity: FloatArray) -> None:
        """Take in a velocity and forget those before it: it does not continue them."""
        self._times_ns, self._velocities = [t_ns], [velocity]
