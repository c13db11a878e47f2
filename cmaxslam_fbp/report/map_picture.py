"""The map as a picture: dark events on white."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import Picture

GAMMA = 0.75
_BLACK_PERCENTILE = 98.0  # of the pixels that have events: those with more are all black


def draw_map(panorama: npt.NDArray[np.float32], gamma: float = GAMMA) -> npt.NDArray[np.uint8]:
    """Return a grey picture (height, width): white without events, black where they are many.

    `255 (1 - min(I / I_max, 1)^gamma)`, with `I_max` exceeded by one in fifty of the pixels that have events.
    """
    picture = np.full(panorama.shape, 255, np.uint8)
    has_events = panorama > 0
    counts = panorama[has_events]  # a small part of a large map
    if len(counts):
        with np.errstate(over="ignore"):  # a damaged map may have any values
            strength = np.clip(counts / np.percentile(counts, _BLACK_PERCENTILE), 0, 1) ** gamma
        picture[has_events] = np.rint(255 * (1 - strength))
    return picture


def draw_graticule(picture: npt.NDArray[np.uint8], step_deg: float = 30.0, grey: int = 222) -> npt.NDArray[np.uint8]:
    """Return a grey panorama with thin lines of equal longitude and latitude, which events cover."""
    height, width = picture.shape
    per_degree = width / 360
    drawn = picture.copy()
    columns = np.rint(np.arange(0, 360, step_deg) * per_degree).astype(int)
    rows = np.rint(height / 2 + np.arange(-90 + step_deg, 90, step_deg) * per_degree).astype(int)
    rows = rows[(rows >= 0) & (rows < height)]
    drawn[:, columns] = np.minimum(drawn[:, columns], grey)
    drawn[rows] = np.minimum(drawn[rows], grey)
    return drawn


def encode_png(picture: Picture, compression: int | None = None) -> bytes:
    """Return a picture, grey (height, width) or blue-green-red (height, width, 3), as the bytes of a PNG file."""
    options = [] if compression is None else [cv2.IMWRITE_PNG_COMPRESSION, compression]
    return bytes(cv2.imencode(".png", picture, options)[1].tobytes())
