"""A motion whose rate changes size and axis."""

import numpy as np
from scipy.spatial.transform import Rotation


def curved(t_ns):
    """The motion, and its exact body rate.

    `R = Rz(a) Rx(b)` turns at `b' x + Rx(b)^T (a' z)` about its own axes.
    """
    t = np.asarray(t_ns) / 1e9
    a, b = 0.8 * np.sin(3 * t), 0.5 * np.cos(4 * t)
    da, db = 2.4 * np.cos(3 * t), -2.0 * np.sin(4 * t)
    rotation = Rotation.from_euler("ZX", np.stack([a, b], axis=-1))
    rate = np.stack([db, da * np.sin(b), da * np.cos(b)], axis=-1)
    return rotation, rate
