"""Motions: orientation and angular velocity as exact functions of time, and the random hand-held one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from cmaxslam_fbp.errors import SimulationError

FloatArray = npt.NDArray[np.float64]


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
_WAVES = 4  # sine waves per axis
_RAMP_S = 1.0  # time to come up to speed from rest
_SEARCH_STEP_S = 0.005


class HandheldMotion:
    """A seeded random rotation that starts at rest at the identity and reaches a given peak speed.

    Yaw, pitch and roll are sums of four sine waves each, and `R_wc = R_y(yaw) R_x(pitch) R_z(roll)`, so the
    motion and its velocity are closed forms. One tempo, common to all waves, is solved for so that the largest
    `|omega|` is `peak_speed_deg_s`; it fades in over the first second.

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
        if not 0 < duration_s < np.inf:
            raise SimulationError(f"a motion of {duration_s} s is impossible; give a positive duration")
        if not 0 <= peak_speed_deg_s < np.inf:
            raise SimulationError(f"a peak speed of {peak_speed_deg_s} deg/s is impossible; give 0 or more")
        if not 0 < extent_deg <= 140:
            raise SimulationError(f"an extent of {extent_deg} deg is impossible; give one within (0, 140]")
        self._duration_s = float(duration_s)
        self._ramp_s = min(_RAMP_S, duration_s / 4)
        rng = np.random.default_rng([seed, 0x4D6F7469])
        self._frequencies = rng.uniform(0.4, 1.6, (3, _WAVES))  # cycles per unit of phase
        weights = rng.uniform(0.4, 1.0, (3, _WAVES)) / self._frequencies
        total = weights.sum(axis=1)
        # Start near the middle of every axis's range, so that the range is used on both sides.
        while True:
            self._phases = rng.uniform(0, 2 * np.pi, (3, _WAVES))
            offsets = (weights * np.sin(self._phases)).sum(axis=1)
            if (np.abs(offsets) < 0.1 * total).all():
                break
        bound = total + np.abs(offsets)
        scale = np.radians(extent_deg) * _SHARES / bound
        self._weights, self._offsets = weights * scale[:, None], offsets * scale
        self._tempo = 0.0
        if peak_speed_deg_s > 0:
            self._tempo = self._solve_tempo(np.radians(peak_speed_deg_s))

    def _solve_tempo(self, peak_rad_s: float) -> float:
        """Return the phase units per second at which the largest `|omega|` is the wanted one."""
        times = np.linspace(0, self._duration_s, 2 + int(self._duration_s / _SEARCH_STEP_S))

        def excess(tempo: float) -> float:
            self._tempo = tempo
            return float(np.linalg.norm(self.angular_velocities(times), axis=1).max()) - peak_rad_s

        fast = 0.1
        while excess(fast) < 0:
            fast *= 1.5
        return float(brentq(excess, 0.0, fast, xtol=1e-9, rtol=1e-9))

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self._duration_s

    def _angles(self, t_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Yaw, pitch, roll (3, M) in radians, and their rates."""
        t = np.asarray(t_s, np.float64)
        x = np.clip(t / self._ramp_s, 0, 1)
        ramp = x**3 * (10 + x * (6 * x - 15))
        ramp_integral = self._ramp_s * x**4 * (2.5 + x * (x - 3)) + np.maximum(t - self._ramp_s, 0)
        turns = 2 * np.pi * self._frequencies[:, :, None]
        arguments = turns * (self._tempo * ramp_integral) + self._phases[:, :, None]
        angles = (self._weights[:, :, None] * np.sin(arguments)).sum(axis=1) - self._offsets[:, None]
        rates = (self._weights[:, :, None] * turns * np.cos(arguments)).sum(axis=1) * (self._tempo * ramp)
        return angles, rates

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc = R_y(yaw) R_x(pitch) R_z(roll)` (M, 3, 3) at times (M,)."""
        (yaw, pitch, roll), _ = self._angles(t_s)
        cy, sy, cp, sp, cr, sr = (f(a) for a in (yaw, pitch, roll) for f in (np.cos, np.sin))
        matrix = np.empty((len(yaw), 3, 3))
        matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 0, 2] = cy * cr + sy * sp * sr, sy * sp * cr - cy * sr, sy * cp
        matrix[:, 1, 0], matrix[:, 1, 1], matrix[:, 1, 2] = cp * sr, cp * cr, -sp
        matrix[:, 2, 0], matrix[:, 2, 1], matrix[:, 2, 2] = cy * sp * sr - sy * cr, sy * sr + cy * sp * cr, cy * cp
        return matrix

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,)."""
        (_, pitch, roll), (yaw_rate, pitch_rate, roll_rate) = self._angles(t_s)
        cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
        return np.stack(
            [
                yaw_rate * sr * cp + pitch_rate * cr,
                yaw_rate * cr * cp - pitch_rate * sr,
                roll_rate - yaw_rate * sp,
            ],
            axis=-1,
        )


def ground_truth_times_ns(duration_ns: int, rate_hz: int = 200) -> npt.NDArray[np.int64]:
    """Return the times since the start at which poses are given: every `1 / rate_hz`, and the end itself."""
    step_ns = 1_000_000_000 // rate_hz
    times = np.arange(0, duration_ns + 1, step_ns, dtype=np.int64)
    if times[-1] != duration_ns:
        times = np.append(times, np.int64(duration_ns))
    return times
