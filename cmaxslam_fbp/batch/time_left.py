"""How long a batch will still take, from how long its finished runs took."""

from __future__ import annotations

from collections.abc import Iterable


class TimeLeft:
    """Takes the time of a run as proportional to its size, with the factor of the runs that are finished."""

    def __init__(self) -> None:
        self._size = self._seconds = 0.0

    def finished(self, size: float, seconds: float) -> None:
        """Learn from a finished run of this size."""
        self._size, self._seconds = self._size + size, self._seconds + seconds

    def left_s(self, waiting: Iterable[float], running: Iterable[tuple[float, float]]) -> float | None:
        """Return the seconds until all is done; None before the first run is.

        Parameters
        ----------
        waiting : sizes of the runs that have not started
        running : sizes of those that have, and the seconds since; so many run at a time
        """
        if self._size <= 0:
            return None
        factor, now = self._seconds / self._size, list(running)
        ends = [max(factor * size - passed_s, 0.0) for size, passed_s in now]
        together = factor * sum(waiting) + sum(ends)
        return max([together / max(len(now), 1), *ends])
