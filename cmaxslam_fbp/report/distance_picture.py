"""The distances of a scene as colours: near is warm, far is cold, and what was not seen is white."""

from __future__ import annotations

import cv2
import numpy as np

from cmaxslam_fbp.arrays import FloatArray, Picture

_RANGE = 0.7  # of the logarithm of the distance, on either side of the mean: half to double


def draw_distances(distances: FloatArray) -> Picture:
    """Return a picture (rows, columns, 3), blue-green-red, of distances (rows, columns); NaN is white.

    The colour goes with the logarithm of the distance relative to its mean.
    """
    known = np.isfinite(distances)
    if not known.any():
        return np.full((*distances.shape, 3), 255, np.uint8)
    log = np.log(np.where(known, distances, 1.0))
    nearness = 0.5 - (log - log[known].mean()) / (2 * _RANGE)
    levels = np.rint(255 * np.clip(nearness, 0, 1)).astype(np.uint8)
    coloured = np.asarray(cv2.applyColorMap(levels, cv2.COLORMAP_TURBO), np.uint8)
    return np.where(known[..., None], coloured, np.uint8(255))
