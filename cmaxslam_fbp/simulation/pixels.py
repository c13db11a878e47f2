"""The pixels of a sensor: what was drawn for each of them, and what each remembers from block to block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray, SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.sensor_settings import MIN_CONTRAST, SensorSettings


@dataclass(frozen=True, eq=False)
class PixelTraits:
    """What differs between the N pixels of a sensor, all arrays (N,) but the indices of the hot ones.

    `random_states` and `noise_times_us` are those at the start: the seeds, and each pixel's first noise event.
    """

    thresholds_on: SingleArray
    thresholds_off: SingleArray
    noise_rates_hz: FloatArray
    refractories_us: IntArray
    hot_pixels: IntArray
    random_states: npt.NDArray[np.uint64]
    noise_times_us: FloatArray


def draw_traits(settings: SensorSettings, count: int, seed: int) -> PixelTraits:
    """Draw the pixels of a sensor."""
    from cmaxslam_fbp.simulation.sensor_kernels import first_noise

    if settings.hot_pixels > count:
        raise SimulationError(f"{settings.hot_pixels} hot pixels do not fit on a sensor of {count}; give fewer")
    rng = np.random.default_rng([seed, 0x53656E73])
    spread = settings.contrast_sigma * rng.standard_normal((2, count))
    rates_hz = np.full(count, float(settings.noise_rate_hz))
    refractories_us = np.full(count, round(settings.refractory_s * 1e6), np.int64)
    hot_pixels = np.sort(rng.choice(count, int(settings.hot_pixels), replace=False))
    rates_hz[hot_pixels] = settings.hot_pixel_rate_hz
    if settings.hot_pixel_rate_hz * settings.refractory_s > 1:
        refractories_us[hot_pixels] = 0
    random_states = rng.integers(0, 2**64, count, dtype=np.uint64)
    noise_times_us = np.empty(count)
    first_noise(rates_hz, random_states, noise_times_us)
    return PixelTraits(
        np.maximum(settings.contrast_on + spread[0], MIN_CONTRAST).astype(np.float32),
        np.maximum(settings.contrast_off + spread[1], MIN_CONTRAST).astype(np.float32),
        rates_hz,
        refractories_us,
        hot_pixels,
        random_states,
        noise_times_us,
    )


class Pixels(Protocol):
    """Pixels that turn levels into events."""

    def begin(self, levels: SingleArray) -> None:
        """Adapt to levels (N,)."""
        ...

    def advance(self, view: tuple[Any, ...], times: tuple[Any, ...], out: tuple[Any, ...]) -> tuple[int, int]:
        """Run pixels `first...` through one block, as far as the output has room.

        Parameters
        ----------
        view : scene, foreground and light, as in `fill_levels`
        times : times of the renderings in microseconds since the block's start, and that start
        out : stamps and codes to fill, the first pixel to run, the number of events so far

        Returns
        -------
        The first pixel not done, and the number of events.
        """
        ...


class IdealPixels:
    """Instantaneous comparators with a refractory time and background noise."""

    def __init__(self, traits: PixelTraits) -> None:
        from cmaxslam_fbp.simulation.sensor_kernels import LONG_AGO_US

        count = len(traits.thresholds_on)
        self._thresholds = traits.thresholds_on, traits.thresholds_off, traits.noise_rates_hz, traits.refractories_us
        self._reference, self._previous = np.zeros(count, np.float32), np.zeros(count, np.float32)
        self._state = (
            self._reference, self._previous, np.full(count, LONG_AGO_US, np.int64),
            traits.noise_times_us.copy(), traits.random_states.copy(),
        )  # fmt: skip

    def begin(self, levels: SingleArray) -> None:
        """Adapt to levels (N,)."""
        self._reference[:] = levels
        self._previous[:] = levels

    def advance(self, view: tuple[Any, ...], times: tuple[Any, ...], out: tuple[Any, ...]) -> tuple[int, int]:
        """Run pixels through one block; see `Pixels`."""
        from cmaxslam_fbp.simulation.sensor_kernels import advance_pixels

        done: tuple[int, int] = advance_pixels(*view, *times, self._thresholds, self._state, *out)
        return done


class CircuitPixels:
    """Photoreceptors of finite bandwidth and comparators with shot noise, reset and leak.

    `bright` is the log intensity at which the photoreceptor has its shortest time constant.
    """

    def __init__(self, traits: PixelTraits, settings: SensorSettings, bright: float, seed: int) -> None:
        from cmaxslam_fbp.simulation.circuit_kernels import AWAKE

        count = len(traits.thresholds_on)
        rng = np.random.default_rng([seed, 0x43697263])
        on, off = traits.thresholds_on.astype(np.float64), traits.thresholds_off.astype(np.float64)
        noise = settings.level_noise * rng.standard_normal((3, count))
        leaks_hz = settings.leak_rate_hz * np.exp(settings.leak_spread * rng.standard_normal(count))
        dampings = np.full(count, 1 - settings.noise_bright_share)
        dampings[traits.hot_pixels] = 0
        self._circuit = bright, settings.time_constant_s * 1e6, settings.dark_light, settings.level_noise, MIN_CONTRAST
        self._thresholds = (
            on, off, traits.noise_rates_hz, dampings, traits.refractories_us,
            1e-6 * settings.contrast_on * leaks_hz,  # log intensity per microsecond
        )  # fmt: skip
        self._reference, self._filtered = np.zeros(count), np.zeros(count)
        self._previous = np.zeros(count, np.float32)
        self._state = (
            self._reference, self._previous, self._filtered,
            np.maximum(on + noise[0] + noise[1], MIN_CONTRAST), np.maximum(off - noise[0] + noise[2], MIN_CONTRAST),
            np.full(count, AWAKE), traits.noise_times_us.copy(), traits.random_states.copy(),
        )  # fmt: skip

    def begin(self, levels: SingleArray) -> None:
        """Adapt to levels (N,)."""
        for array in (self._reference, self._filtered, self._previous):
            array[:] = levels

    def advance(self, view: tuple[Any, ...], times: tuple[Any, ...], out: tuple[Any, ...]) -> tuple[int, int]:
        """Run pixels through one block; see `Pixels`."""
        from cmaxslam_fbp.simulation.circuit_kernels import advance_circuits

        done: tuple[int, int] = advance_circuits(*view, *times, self._circuit, self._thresholds, self._state, *out)
        return done
