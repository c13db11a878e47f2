"""A seeded random wander of three coordinates: sums of sine waves that start at rest at zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError

_WAVES = 4  # sine waves per coordinate
_RAMP_S = 1.0  # time to come up to speed from rest
_SEARCH_STEP_S = 0.005


class Wandering:
    """Three coordinates, each a sum of four sine waves of one common tempo, which fades in over the first second.

    Values, rates and accelerations are closed forms. The tempo is zero, that is rest, until `reach_peak` solves it.

    Parameters
    ----------
    duration_s : float
        Length in time.
    bounds : (3,)
        The coordinates stay within plus and minus these.
    seed : sequence of int
        The same arguments give the same wander.
    """

    def __init__(self, duration_s: float, bounds: FloatArray, seed: list[int]) -> None:
        if not 0 < duration_s < np.inf:
            raise SimulationError(f"a motion of {duration_s} s is impossible; give a positive duration")
        self.duration_s = float(duration_s)
        self._ramp_s = min(_RAMP_S, duration_s / 4)
        rng = np.random.default_rng(seed)
        self._frequencies = rng.uniform(0.4, 1.6, (3, _WAVES))  # cycles per unit of phase
        weights = rng.uniform(0.4, 1.0, (3, _WAVES)) / self._frequencies
        total = weights.sum(axis=1)
        # Start near the middle of every coordinate's range, so that the range is used on both sides.
        while True:
            self._phases = rng.uniform(0, 2 * np.pi, (3, _WAVES))
            offsets = (weights * np.sin(self._phases)).sum(axis=1)
            if (np.abs(offsets) < 0.1 * total).all():
                break
        scale = bounds / (total + np.abs(offsets))
        self._weights, self._offsets = weights * scale[:, None], offsets * scale
        self._tempo = 0.0

    def reach_peak(self, peak: float, speeds: Callable[[FloatArray], FloatArray]) -> None:
        """Set the tempo, in phase units per second, at which the largest of `speeds(t_s)` (M,) is `peak`."""
        if peak == 0:
            self._tempo = 0.0
            return
        times = np.linspace(0, self.duration_s, 2 + int(self.duration_s / _SEARCH_STEP_S))

        def excess(tempo: float) -> float:
            self._tempo = tempo
            return float(speeds(times).max()) - peak

        fast = 0.1
        while excess(fast) < 0:
            fast *= 1.5
        self._tempo = float(brentq(excess, 0.0, fast, xtol=1e-9, rtol=1e-9))

    def _clock(self, t_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Phase (M,) of the waves' common clock, its rate and its acceleration: quintic from rest to the tempo."""
        t = np.asarray(t_s, np.float64)
        x = np.clip(t / self._ramp_s, 0, 1)
        ramp = x**3 * (10 + x * (6 * x - 15))
        ramp_integral = self._ramp_s * x**4 * (2.5 + x * (x - 3)) + np.maximum(t - self._ramp_s, 0)
        ramp_rate = 30 * (x * (1 - x)) ** 2 / self._ramp_s
        return self._tempo * ramp_integral, self._tempo * ramp, self._tempo * ramp_rate

    def values_and_rates(self, t_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the coordinates (3, M) at times (M,), and their rates per second."""
        clock, clock_rate, _ = self._clock(t_s)
        turns = 2 * np.pi * self._frequencies[:, :, None]
        arguments = turns * clock + self._phases[:, :, None]
        values = (self._weights[:, :, None] * np.sin(arguments)).sum(axis=1) - self._offsets[:, None]
        rates = (self._weights[:, :, None] * turns * np.cos(arguments)).sum(axis=1) * clock_rate
        return values, rates

    def accelerations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the second derivatives (3, M) of the coordinates at times (M,)."""
        clock, clock_rate, clock_acceleration = self._clock(t_s)
        turns = 2 * np.pi * self._frequencies[:, :, None]
        arguments = turns * clock + self._phases[:, :, None]
        slopes = (self._weights[:, :, None] * turns * np.cos(arguments)).sum(axis=1)
        curvatures = -(self._weights[:, :, None] * turns**2 * np.sin(arguments)).sum(axis=1)
        return np.asarray(slopes * clock_acceleration + curvatures * clock_rate**2)
