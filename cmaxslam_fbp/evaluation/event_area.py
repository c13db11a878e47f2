"""The event area of a map: how much of it the events fill, a figure of sharpness that needs no reference."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray

_FEWEST_LOOKS = 8  # a pixel that was hardly seen says little
_ROWS = 64  # that are worked on at once


def event_area(panorama: SingleArray, looks: npt.NDArray[np.uint16]) -> float:
    """Return the share of a map's pixels that its events fill: of two maps of the same events, the sharper has less.

    With `d` events per look at each of `n` pixels it is `(sum d)^2 / (n sum d^2)`: the share of pixels that hold events
    where all of those hold equally many. Single noise events, which lie everywhere, hardly count beside edges; nor
    does it matter how often a pixel was seen, or how many events there are.

    Parameters
    ----------
    panorama : (height, width) event counts
    looks : (height, width) how often each pixel was in view while its events were counted
    """
    total, squares = 0.0, 0.0
    for row in range(0, len(panorama), _ROWS):
        events, seen = panorama[row : row + _ROWS], looks[row : row + _ROWS]
        density = events[seen >= _FEWEST_LOOKS] / seen[seen >= _FEWEST_LOOKS]
        total += float(density.sum(dtype=np.float64))
        squares += float(np.square(density).sum(dtype=np.float64))
    return total**2 / (panorama.size * squares) if squares > 0 else 0.0
