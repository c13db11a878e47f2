"""Orientations as angles that people read: yaw, pitch and roll without jumps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.geometry.rotation import Rotation

NAMES = ("yaw", "pitch", "roll")

_STRAIGHT_UP = 1e-7  # the cosine of a pitch from which on the axes of yaw and roll cannot be told apart


def yaw_pitch_roll_deg(rotations: Rotation) -> npt.NDArray[np.float64]:
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
