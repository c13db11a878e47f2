"""Translations: position, velocity and acceleration as exact functions of time, and the random hand-held one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.wandering import Wandering

# Of the extent, for right, down and forward: a hand that waves a camera at a wall moves along it.
SHARES = np.array([1.0, 0.8, 0.5])


class Translation(Protocol):
    """A smooth path of the camera's centre through the world, over seconds since the start of the recording."""

    def positions(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the positions (M, 3) in metres at times (M,)."""
        ...

    def velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the velocities (M, 3) in m/s, in the world's axes, at times (M,)."""
        ...

    def accelerations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the accelerations (M, 3) in m/s^2, in the world's axes, at times (M,)."""
        ...


class HandheldTranslation:
    """A seeded random path that starts at rest at the origin and reaches a given peak speed.

    Its coordinates wander as sums of sine waves, so position, velocity and acceleration are closed forms. The waves'
    tempo is solved for so that the largest speed is `peak_speed_m_s`; it fades in over the first second.

    Parameters
    ----------
    duration_s : float
        Length of the motion.
    peak_speed_m_s : float
        Largest `|v|`. Zero gives a camera at rest.
    extent_m : float
        Bound of `|x|`; `|y|` stays within 0.8 and `|z|` within 0.5 of it.
    seed : int
        The same arguments give the same path.
    """

    def __init__(self, duration_s: float, peak_speed_m_s: float, extent_m: float, seed: int) -> None:
        if not 0 <= peak_speed_m_s < np.inf:
            raise SimulationError(f"a peak speed of {peak_speed_m_s} m/s is impossible; give 0 or more")
        if not 0 < extent_m < np.inf:
            raise SimulationError(f"an extent of {extent_m} m is impossible; give a positive one")
        self._path = Wandering(duration_s, extent_m * SHARES, [seed, 0x5472616E])
        self._path.reach_peak(peak_speed_m_s, lambda t_s: np.linalg.norm(self.velocities(t_s), axis=1))

    def positions(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the positions (M, 3) in metres at times (M,)."""
        return self._path.values_and_rates(t_s)[0].T

    def velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the velocities (M, 3) in m/s at times (M,)."""
        return self._path.values_and_rates(t_s)[1].T

    def accelerations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the accelerations (M, 3) in m/s^2 at times (M,)."""
        return self._path.accelerations(t_s).T
