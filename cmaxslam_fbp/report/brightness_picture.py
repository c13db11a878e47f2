"""The brightness of the scene as a picture: grey, and transparent where nothing was seen."""

from __future__ import annotations

import cv2
import numpy as np

from cmaxslam_fbp.arrays import FloatArray, Picture, SingleArray
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

_BLACK_PERCENT, _WHITE_PERCENT = 0.5, 99.5  # of the pixels: beyond them all is black or white


def grey_levels(log_intensity: SingleArray) -> Picture:
    """Return log intensity as grey levels (height, width), darkest to brightest; 0 where it is NaN.

    The logarithm itself is shown: it is how the eye, and the sensor, see a high dynamic range.
    """
    seen = np.isfinite(log_intensity)
    if not seen.any():
        return np.zeros(log_intensity.shape, np.uint8)
    dark, bright = np.percentile(log_intensity[seen], [_BLACK_PERCENT, _WHITE_PERCENT])
    share = (np.where(seen, log_intensity, dark) - dark) / max(bright - dark, 1e-6)
    return np.rint(255 * np.clip(share, 0, 1)).astype(np.uint8)


def draw_brightness(log_intensity: SingleArray) -> Picture:
    """Return a picture (height, width, 4), blue-green-red-alpha, of log intensity; transparent where it is NaN."""
    alpha = np.where(np.isfinite(log_intensity), 255, 0).astype(np.uint8)
    return np.dstack([*[grey_levels(log_intensity)] * 3, alpha])


def render_brightness(log_intensity: SingleArray, R_wc: FloatArray, camera: Camera) -> SingleArray:
    """Return the log intensity (height, width) that a camera with the orientation `R_wc` sees; NaN beyond the map."""
    height, width = log_intensity.shape
    pixels = Equirectangular(width, height).project(camera.bearings() @ R_wc.T).astype(np.float32)
    seen = cv2.remap(log_intensity, pixels[..., 0], pixels[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    return np.asarray(seen, np.float32)
