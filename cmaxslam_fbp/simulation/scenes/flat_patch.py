"""The part of a flat image around a point, with coordinates that are turned about it."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.simulation.scenes.tangent_patch import TangentPatch


def flat_patch(size: int, focal: float, centre: FloatArray, roll_rad: float, radius: float) -> TangentPatch:
    """Return the patch of a square image that holds the disc of `radius` around `centre` (2,): right and down.

    Lengths count from the image's middle, in units of `focal` pixels; `size` is in pixels.
    """
    middle = (size - 1) / 2
    first = np.maximum(np.floor(middle + focal * (centre - radius)).astype(int), 0)
    last = np.minimum(np.ceil(middle + focal * (centre + radius)).astype(int), size - 1)
    x, y = (np.arange(first[axis], last[axis] + 1) for axis in range(2))
    right, down = ((x - middle) / focal - centre[0])[None, :], ((y - middle) / focal - centre[1])[:, None]
    c, s = np.cos(roll_rad), np.sin(roll_rad)
    return TangentPatch(y[:, None], x[None, :], c * right + s * down, c * down - s * right)
