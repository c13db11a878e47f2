"""Light that changes by itself: a lamp that flickers on a part of the image, and a lens that is covered for a while."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera

_RENDERINGS_PER_PERIOD = 24
_RENDERINGS_PER_FADE = 64


@dataclass(frozen=True)
class FlickerSettings:
    """A light of `1 + depth sin(2 pi rate t)` on a rectangle of the image, its upper right corner.

    Lamps on alternating current of 50 Hz flicker at 100 Hz. `part` is the rectangle's share of the image.
    """

    rate_hz: float = 100.0
    depth: float = 0.3
    part: float = 0.25

    def __post_init__(self) -> None:
        if not (0 < self.rate_hz <= 1000 and 0 < self.depth < 1 and 0 < self.part <= 1):
            raise SimulationError(
                f"a flicker of {self.rate_hz} Hz, depth {self.depth}, over {self.part} of the image is impossible; "
                "give at most 1000 Hz, a depth below 1 and a part of at most 1"
            )


@dataclass(frozen=True)
class CoverSettings:
    """A lens that is covered from `start_s` for `length_s`, while the camera turns by `turn_deg` about the vertical.

    It grows dark and light again over `fade_s` each, which belong to the length. The motion then goes on from there.
    """

    start_s: float = 5.0
    length_s: float = 1.0
    turn_deg: float = 0.0
    fade_s: float = 0.05

    def __post_init__(self) -> None:
        if not (0 <= self.start_s < np.inf and 0 < 2 * self.fade_s < self.length_s < np.inf):
            raise SimulationError(
                f"a lens covered at {self.start_s} s for {self.length_s} s with fades of {self.fade_s} s is no good; "
                "give a length of more than two fades"
            )


@dataclass(frozen=True)
class Lighting:
    """What is added to the log intensity of the scene, and what takes its place."""

    flicker: FlickerSettings | None = None
    cover: CoverSettings | None = None

    def flickers(self, times_s: FloatArray) -> SingleArray:
        """Return the change of log intensity (M,) where the light flickers; empty if none does."""
        if self.flicker is None:
            return np.empty(0, np.float32)
        wave = np.sin(2 * np.pi * self.flicker.rate_hz * times_s)
        return np.log1p(self.flicker.depth * wave).astype(np.float32)

    def covers(self, times_s: FloatArray) -> SingleArray:
        """Return how far the lens is covered (M,), from 0 to 1; empty if it never is."""
        cover = self.cover
        if cover is None:
            return np.empty(0, np.float32)
        inside = np.minimum(times_s - cover.start_s, cover.start_s + cover.length_s - times_s)
        return np.clip(inside / cover.fade_s, 0, 1).astype(np.float32)

    def lit_pixels(self, camera: Camera) -> npt.NDArray[np.bool_]:
        """Return the pixels (height width,) on which the flickering light falls."""
        lit = np.zeros((camera.height, camera.width), bool)
        if self.flicker is not None:
            side = np.sqrt(self.flicker.part)
            lit[: round(side * camera.height), round((1 - side) * camera.width) :] = True
        return lit.reshape(-1)

    def rendering_rates_hz(self, times_s: FloatArray) -> FloatArray:
        """Return how many renderings per second (M,) the changes of the light need."""
        rates = np.zeros(len(times_s))
        if self.flicker is not None:
            rates += _RENDERINGS_PER_PERIOD * self.flicker.rate_hz
        if self.cover is not None:
            cover, margin_s = self.cover, 2e-3
            for begin_s in (cover.start_s, cover.start_s + cover.length_s - cover.fade_s):
                fading = (times_s > begin_s - margin_s) & (times_s < begin_s + cover.fade_s + margin_s)
                rates[fading] = np.maximum(rates[fading], _RENDERINGS_PER_FADE / cover.fade_s)
        return rates
