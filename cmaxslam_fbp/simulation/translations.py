"""Translations: position, velocity and acceleration as exact functions of time: random, of a hand, recorded."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_lsq_spline

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.simulation.motions import Motion, SampledMotion
from cmaxslam_fbp.simulation.wandering import Wandering
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

# Of the extent, for right, down and forward: a hand that waves a camera at a wall moves along it.
SHARES = np.array([1.0, 0.8, 0.5])

_WRIST_SHARE = 0.25  # of the lever, by which the wrist itself moves
_WRIST_SPEED = 2.0  # levers per second, at most
_DIFFERENCE_S = 1e-4  # half step of the derivatives of a lever's end


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


class HandTranslation:
    """The path of a camera that a hand turns about its wrist: `p(t) = R(t) l - l + w(t)`.

    The lever `l` points from the wrist to the camera: `lever_m` forward, with a third of that to the right and up. The
    wrist wanders by a quarter of the lever. Derivatives of the first part are central differences of an exact motion.

    Parameters
    ----------
    motion : Motion
        The rotation `R_wc`.
    lever_m : float
        The lever's forward part; zero gives a camera that only turns.
    seed : int
        Draws the wrist's path.
    """

    def __init__(self, motion: Motion, lever_m: float, seed: int) -> None:
        self._motion = motion
        self._lever = lever_m * np.array([1 / 3, -1 / 3, 1.0])
        self._wrist: HandheldTranslation | None = None
        if lever_m > 0:
            extent_m, speed_m_s = _WRIST_SHARE * lever_m, _WRIST_SPEED * lever_m
            self._wrist = HandheldTranslation(motion.duration_s, speed_m_s, extent_m, seed)

    def positions(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the positions (M, 3) in metres at times (M,)."""
        path = self._motion.rotations(t_s) @ self._lever - self._motion.rotations([0.0])[0] @ self._lever
        return np.asarray(path if self._wrist is None else path + self._wrist.positions(t_s))

    def velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the velocities (M, 3) in m/s at times (M,): `R (omega x l)`, and the wrist's."""
        turning = np.cross(self._motion.angular_velocities(t_s), self._lever)
        path = np.einsum("kij,kj->ki", self._motion.rotations(t_s), turning)
        return np.asarray(path if self._wrist is None else path + self._wrist.velocities(t_s))

    def accelerations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the accelerations (M, 3) in m/s^2 at times (M,), as central differences of the velocity."""
        t = np.asarray(t_s, np.float64)
        after, before = np.minimum(t + _DIFFERENCE_S, self._motion.duration_s), np.maximum(t - _DIFFERENCE_S, 0)
        return np.asarray((self.velocities(after) - self.velocities(before)) / (after - before)[:, None])


class SampledTranslation:
    """A smooth path along the positions of a trajectory, as `SampledMotion` follows its orientations.

    A cubic B-spline with one knot per six samples, fitted in the least-squares sense, in the world of the motion: it
    starts at the origin.

    Parameters
    ----------
    trajectory : RotationTrajectory
        With positions; without them the camera stays where it is.
    motion : SampledMotion
        The rotation along the same trajectory.
    """

    def __init__(self, trajectory: RotationTrajectory, motion: SampledMotion) -> None:
        t_s = (trajectory.t_ns - trajectory.start_ns).astype(np.float64) / NS_PER_S
        positions = np.zeros((len(t_s), 3)) if trajectory.positions_m is None else trajectory.positions_m
        path = make_lsq_spline(t_s, (positions - positions[0]) @ motion.turn.T, motion.knots, k=3)
        self._path, self._start = path, path(0.0)
        self._velocity, self._acceleration = path.derivative(), path.derivative(2)

    def positions(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the positions (M, 3) in metres at times (M,)."""
        return np.asarray(self._path(np.asarray(t_s, np.float64)) - self._start)

    def velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the velocities (M, 3) in m/s at times (M,)."""
        return np.asarray(self._velocity(np.asarray(t_s, np.float64)))

    def accelerations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the accelerations (M, 3) in m/s^2 at times (M,)."""
        return np.asarray(self._acceleration(np.asarray(t_s, np.float64)))
