"""When events have arrived, and how long it took until their poses were known."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Latency:
    """Seconds from the arrival of events to the pose that includes them and does not change any more."""

    median_s: float
    percentile_95_s: float
    largest_s: float


class Arrivals:
    """Stamps and times of arrival of what waits for its pose, and the latencies of what has it.

    `add` and `settle` may be called from two threads.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._latencies_s = array("f")

    def add(self, newest_ns: int, now_s: float) -> None:
        """Note that events up to a stamp have arrived."""
        self._waiting.append((newest_ns, now_s))

    def settle(self, t_ns: int, now_s: float) -> None:
        """Note that the poses before a time are known."""
        while self._waiting and self._waiting[0][0] < t_ns:
            self._latencies_s.append(now_s - self._waiting.popleft()[1])

    def latency(self) -> Latency | None:
        """Return the latencies so far; None where no pose is known."""
        if not self._latencies_s:
            return None
        median_s, late_s, largest_s = np.quantile(np.array(self._latencies_s), [0.5, 0.95, 1.0]).tolist()
        return Latency(median_s, late_s, largest_s)
