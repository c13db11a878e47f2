"""Pairs of events in a row of one pixel of the sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.events import Events


@dataclass(frozen=True, eq=False)
class EventPairs:
    """Two events in a row of a pixel say that the log intensity changed by `s C` between the two times.

    Attributes
    ----------
    before_ns, t_ns : (N,) int64
        The times `t'` and `t` of the two.
    bearings : (N, 3) float64
        The direction that the pixel sees, in the camera.
    change : (N,) float64
        `s C`: the second one's polarity times its threshold, in units of the thresholds' geometric mean.
    """

    before_ns: IntArray
    t_ns: IntArray
    bearings: FloatArray
    change: FloatArray

    def __len__(self) -> int:
        return len(self.t_ns)

    def __getitem__(self, chosen: npt.NDArray[np.bool_] | slice) -> EventPairs:
        return EventPairs(self.before_ns[chosen], self.t_ns[chosen], self.bearings[chosen], self.change[chosen])


def find_pairs(events: Events, parts: IntArray, bearings: FloatArray) -> EventPairs:
    """Return the pairs of events, ordered by time: those of one pixel and of one of the `parts` (N,) of the time.

    `bearings` (height, width, 3) are those of the sensor. A camera that looks at the same things again and again makes
    the intensity rise as much as it falls, so the thresholds are those that balance the numbers of events.
    """
    width = bearings.shape[1]
    pixel = events.y.astype(np.int64) * width + events.x
    order = np.argsort(pixel, kind="stable")
    first, second = order[:-1], order[1:]
    in_a_row = (pixel[first] == pixel[second]) & (parts[first] == parts[second])
    second_of_pair = np.full(len(events), -1, np.int64)
    second_of_pair[second[in_a_row]] = first[in_a_row]
    later = np.flatnonzero(second_of_pair >= 0)
    earlier = second_of_pair[later]
    brighter = max(int(np.count_nonzero(events.p)), 1)
    balance = np.sqrt(max(len(events) - brighter, 1) / brighter)
    return EventPairs(
        events.t_ns[earlier],
        events.t_ns[later],
        bearings.reshape(-1, 3)[pixel[later]],
        np.where(events.p[later] > 0, balance, -1 / balance),
    )
