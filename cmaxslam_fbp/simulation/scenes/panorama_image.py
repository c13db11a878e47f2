"""A scene from an image file: a 360 x 180 degree photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.scenes.intensity_image import check_intensity, read_intensity

# Beyond it the sensor cannot tell the difference, and OpenCV's remapping ends at 32767.
_MAX_WIDTH = 8192


def check_panorama(panorama: npt.ArrayLike, name: str = "the panorama") -> npt.NDArray[np.float32]:
    """Return a panorama of linear intensity as float32 (width / 2, width), or say why it is none."""
    image = np.asarray(panorama)
    if image.ndim != 2 or image.shape[0] < 8 or image.shape[1] != 2 * image.shape[0]:
        raise SimulationError(
            f"{name} has the shape {image.shape}; an equirectangular panorama is grey and twice as wide as high"
        )
    image = np.ascontiguousarray(image, np.float32)
    check_intensity(image, name)
    return image


def load_panorama(path: str | Path) -> npt.NDArray[np.float32]:
    """Load an equirectangular image as linear intensity (width / 2, width)."""
    import cv2

    path = Path(path)
    linear = read_intensity(path, "panorama")
    height, width = linear.shape
    if abs(width - 2 * height) > 2:
        raise SimulationError(f"{path} is {width} x {height}; an equirectangular panorama is twice as wide as high")
    width = min(width - width % 2, _MAX_WIDTH)
    if linear.shape != (width // 2, width):
        linear = np.asarray(cv2.resize(linear, (width, width // 2), interpolation=cv2.INTER_AREA), np.float32)
    return check_panorama(linear, str(path))
