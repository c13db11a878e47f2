"""What curves of a run are drawn from: angles without jumps, and fewer points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.geometry.rotation import Rotation

NAMES = ("yaw", "pitch", "roll")
MAX_POINTS = 2000

_STRAIGHT_UP = 1e-7  # the cosine of a pitch from which on the axes of yaw and roll cannot be told apart


def yaw_pitch_roll_deg(rotations: Rotation) -> FloatArray:
    """Return yaw to the right, pitch up and roll clockwise (N, 3) in degrees.

    `R_wc = R_y(yaw) R_x(pitch) R_z(roll)`. Neighbours differ by less than half a turn: the angles leave the range of
    +-180 degrees rather than jump.
    """
    R = rotations.as_matrix()
    level = np.hypot(R[:, 0, 2], R[:, 2, 2])
    upright = level > _STRAIGHT_UP  # straight up or down, yaw and roll are one: it is called yaw
    yaw = np.where(upright, np.arctan2(R[:, 0, 2], R[:, 2, 2]), np.arctan2(-R[:, 2, 0], R[:, 0, 0]))
    roll = np.where(upright, np.arctan2(R[:, 1, 0], R[:, 1, 1]), 0.0)
    return np.degrees(np.unwrap(np.column_stack([yaw, np.arctan2(-R[:, 1, 2], level), roll]), axis=0))


def even_indices(count: int, most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return at most `most` indices of `count` samples, evenly spread, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def peak_indices(values: FloatArray, most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return at most `most` indices of samples (N,): the largest of each of as many pieces, so that no peak is lost."""
    if len(values) <= most:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), most + 1).round().astype(np.intp)
    return np.array([first + int(np.argmax(values[first:last])) for first, last in pairwise(edges)])
