"""Orientations as angles that people read: yaw, pitch and roll without jumps."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

NAMES = ("yaw", "pitch", "roll")


def yaw_pitch_roll_deg(rotations: Rotation) -> npt.NDArray[np.float64]:
    """Return yaw to the right, pitch up and roll clockwise (N, 3) in degrees.

    `R_wc = R_y(yaw) R_x(pitch) R_z(roll)`. Neighbours differ by less than half a turn: the angles leave the range of
    +-180 degrees rather than jump.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # straight up or down, yaw and roll are one: scipy warns
        angles = rotations.as_euler("YXZ")
    return np.degrees(np.unwrap(angles, axis=0))
