"""The scene `stars`: points of light of very different brightness on a dark sky."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.scenes.patches import Patch, flat_patch, random_direction, tangent_axes, tangent_patch

_SKY = 0.02
_COUNT = 1500  # on the whole sphere: about 50 in the view of 60 x 45 degrees
_FAINTEST = 0.15  # peak, relative to the brightest
_SIGMA_RAD = np.radians(0.2)  # of the point that a lens makes of a star: 0.7 pixels of a DAVIS240C


def _draw_peaks(rng: np.random.Generator, count: int) -> FloatArray:
    """Peaks (count,) of intensity: four times as many stars for each magnitude, `N(> b) ~ b^-1.5`, up to 1."""
    return np.minimum(_FAINTEST * (1 - rng.uniform(size=count)) ** (-1 / 1.5), 1.0)


def _add_star(image: FloatArray, patch: Patch, peak: float, sigma: float) -> None:
    flux = peak * (_SIGMA_RAD / sigma) ** 2  # an image too coarse for the star keeps its light
    image[patch.rows, patch.columns] += flux * np.exp(-(patch.u**2 + patch.v**2) / (2 * sigma**2))


def draw_stars(width: int, seed: int) -> SingleArray:
    """Return the panorama (width / 2, width): stars all around."""
    rng = np.random.default_rng([seed, 0x53746172])
    panorama = np.full((width // 2, width), _SKY)
    sigma = max(_SIGMA_RAD, 0.5 * 2 * np.pi / width)
    for peak in _draw_peaks(rng, _COUNT):
        patch = tangent_patch(width, tangent_axes(random_direction(rng), 0.0), 5 * sigma)
        _add_star(panorama, patch, peak, sigma)
    return panorama.astype(np.float32)


def draw_flat_stars(size: int, focal: float, seed: int) -> SingleArray:
    """Return a sky (size, size) of `focal` pixels per unit, as dense as the panorama's."""
    rng = np.random.default_rng([seed, 0x53746172, 1])
    sky = np.full((size, size), _SKY)
    half, sigma = size / 2 / focal, max(float(_SIGMA_RAD), 0.5 / focal)
    for peak in _draw_peaks(rng, round(_COUNT / (4 * np.pi) * (2 * half) ** 2)):
        centre = rng.uniform(-half, half, 2)
        _add_star(sky, flat_patch(size, focal, centre, 0.0, 5 * sigma), peak, sigma)
    return sky.astype(np.float32)
