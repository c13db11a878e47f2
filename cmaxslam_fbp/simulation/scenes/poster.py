"""The scene `poster`: a photograph of rocks and gravel, dense texture at all scales."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray


def draw_poster(width: int, seed: int) -> SingleArray:
    """Return the panorama (width / 2, width): cells and fractal noise of the direction in three dimensions.

    Functions of the direction have neither a seam nor poles.
    """
    from cmaxslam_fbp.simulation.scenes.rock_kernels import rock_levels

    levels = np.empty((width // 2, width), np.float32)
    rock_levels(levels, _seeds(seed))
    return np.exp(levels)


def draw_flat_poster(size: int, focal: float, seed: int) -> SingleArray:
    """Return a poster (size, size) of `focal` pixels per unit: a plane cut through the same cells and noise."""
    from cmaxslam_fbp.simulation.scenes.rock_kernels import flat_rock_levels

    levels = np.empty((size, size), np.float32)
    flat_rock_levels(levels, focal, _seeds(seed))
    return np.exp(levels)


def _seeds(seed: int) -> npt.NDArray[np.uint32]:
    return np.random.default_rng([seed, 0x506F7374]).integers(0, 2**32, 4, dtype=np.uint32)
