"""The map as a picture: dark events on white."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

GAMMA = 0.75
_WHITEST_PERCENTILE = 99.7  # of the pixels that have events: brighter ones are all black


def draw_map(panorama: npt.NDArray[np.float32], gamma: float = GAMMA) -> npt.NDArray[np.uint8]:
    """Return a grey picture (height, width): white without events, black where they are many.

    `255 (1 - min(I / I_max, 1)^gamma)`, with `I_max` near the largest count.
    """
    touched = panorama[panorama > 0]
    largest = float(np.percentile(touched, _WHITEST_PERCENTILE)) if len(touched) else 1.0
    strength = np.clip(panorama / largest, 0, 1) ** gamma
    return np.rint(255 * (1 - strength)).astype(np.uint8)
