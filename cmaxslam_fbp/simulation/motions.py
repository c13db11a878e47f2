"""Motions: orientation and angular velocity as exact functions of time; the random hand-held one, and none."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.wandering import Wandering


class Motion(Protocol):
    """A smooth rotation over `0 <= t <= duration_s`, in seconds since the start of the recording."""

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        ...

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` (M, 3, 3) at times (M,)."""
        ...

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,): `R(t + dt) = R(t) exp(omega dt)`."""
        ...


_SHARES = np.array([1.0, 0.6, 0.7])  # of the extent, for yaw, pitch and roll


class HandheldMotion:
    """A seeded random rotation that starts at rest at the identity and reaches a given peak speed.

    Yaw, pitch and roll wander as sums of sine waves, and `R_wc = R_y(yaw) R_x(pitch) R_z(roll)`, so the motion and its
    velocity are closed forms. The waves' tempo is solved for so that the largest `|omega|` is `peak_speed_deg_s`; it
    fades in over the first second.

    Parameters
    ----------
    duration_s : float
        Length of the motion.
    peak_speed_deg_s : float
        Largest `|omega|`. Zero gives a camera at rest.
    extent_deg : float
        Bound of `|yaw|`; pitch stays within 0.6 and roll within 0.7 of it.
    seed : int
        The same arguments give the same motion.
    """

    def __init__(self, duration_s: float, peak_speed_deg_s: float, extent_deg: float, seed: int) -> None:
        if not 0 <= peak_speed_deg_s < np.inf:
            raise SimulationError(f"a peak speed of {peak_speed_deg_s} deg/s is impossible; give 0 or more")
        if not 0 < extent_deg <= 140:
            raise SimulationError(f"an extent of {extent_deg} deg is impossible; give one within (0, 140]")
        self._angles = Wandering(duration_s, np.radians(extent_deg) * _SHARES, [seed, 0x4D6F7469])
        self._angles.reach_peak(
            np.radians(peak_speed_deg_s), lambda t_s: np.linalg.norm(self.angular_velocities(t_s), axis=1)
        )

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self._angles.duration_s

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc = R_y(yaw) R_x(pitch) R_z(roll)` (M, 3, 3) at times (M,)."""
        (yaw, pitch, roll), _ = self._angles.values_and_rates(t_s)
        cy, sy, cp, sp, cr, sr = (f(a) for a in (yaw, pitch, roll) for f in (np.cos, np.sin))
        matrix = np.empty((len(yaw), 3, 3))
        matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 0, 2] = cy * cr + sy * sp * sr, sy * sp * cr - cy * sr, sy * cp
        matrix[:, 1, 0], matrix[:, 1, 1], matrix[:, 1, 2] = cp * sr, cp * cr, -sp
        matrix[:, 2, 0], matrix[:, 2, 1], matrix[:, 2, 2] = cy * sp * sr - sy * cr, sy * sr + cy * sp * cr, cy * cp
        return matrix

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,)."""
        (_, pitch, roll), (yaw_rate, pitch_rate, roll_rate) = self._angles.values_and_rates(t_s)
        cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
        return np.stack(
            [
                yaw_rate * sr * cp + pitch_rate * cr,
                yaw_rate * cr * cp - pitch_rate * sr,
                roll_rate - yaw_rate * sp,
            ],
            axis=-1,
        )


class NoRotation:
    """A camera that keeps its orientation, the identity."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = float(duration_s)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self._duration_s

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the identity (M, 3, 3) at times (M,)."""
        return np.tile(np.eye(3), (np.size(t_s), 1, 1))

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return zeros (M, 3) in rad/s at times (M,)."""
        return np.zeros((np.size(t_s), 3))


def ground_truth_times_ns(duration_ns: int, rate_hz: int = 200) -> npt.NDArray[np.int64]:
    """Return the times since the start at which poses are given: every `1 / rate_hz`, and the end itself."""
    step_ns = 1_000_000_000 // rate_hz
    times = np.arange(0, duration_ns + 1, step_ns, dtype=np.int64)
    if times[-1] != duration_ns:
        times = np.append(times, np.int64(duration_ns))
    return times
