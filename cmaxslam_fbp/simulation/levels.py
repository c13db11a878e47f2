"""Log intensity, which is what the pixels of an event camera see."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import SingleArray

# The darkest intensity relative to the brightest: a lens and a photoreceptor see no deeper black.
DARKEST = 0.01

# Levels are multiples of it. That is far below any threshold, and makes plain surfaces exactly constant.
_QUANTUM = np.float32(2.0**-12)


def log_levels(intensity: SingleArray) -> SingleArray:
    """Return the logarithm of an image of linear intensity, with a darkest black."""
    brightest = float(intensity.max())
    return np.log(np.maximum(intensity, DARKEST * brightest))


def quantise_levels(levels: SingleArray) -> None:
    """Round levels, in place, to multiples of a quantum far below any threshold."""
    np.round(levels / _QUANTUM, out=levels)
    levels *= _QUANTUM
