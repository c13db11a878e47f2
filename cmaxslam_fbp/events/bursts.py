"""Keep the first event of every burst: an edge that passes a pixel fires it several times, ever later."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.sensor import SensorSize

_LONG_AGO_NS = -(2**62)


class BurstFilter:
    """Passes events whose pixel has not fired with the same polarity for `dead_ns`; it remembers over chunks.

    The contrast of an edge exceeds the threshold of a pixel several times over, so its passage causes a burst. Only
    the first event tells when the edge arrived: the others come later, by the refractory time at least, and make an
    estimate lag behind the motion. An event that is dropped starts the dead time anew.
    """

    def __init__(self, size: SensorSize, dead_ns: int) -> None:
        self._dead_ns = dead_ns
        self._last_ns: npt.NDArray[np.int64] = np.full((2, size.height, size.width), _LONG_AGO_NS)

    def __call__(self, events: Events) -> Events:
        """Return the first events of their bursts."""
        if self._dead_ns <= 0 or not len(events):
            return events
        from cmaxslam_fbp.events import burst_kernels

        keep = np.empty(len(events), np.bool_)
        burst_kernels.find_first(events.t_ns, events.x, events.y, events.p, self._dead_ns, self._last_ns, keep)
        return events[keep]
