"""A scene from an image file: a 360 x 180 degree photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError

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
    if not np.isfinite(image).all() or image.min() < 0 or image.max() <= 0:
        raise SimulationError(f"{name} must hold finite intensities of 0 or more, and not only zeros")
    return image


def load_panorama(path: str | Path) -> npt.NDArray[np.float32]:
    """Load an equirectangular image as linear intensity (width / 2, width); colours become luminance.

    Images of 8 or 16 bits are taken as sRGB.
    """
    import cv2

    path = Path(path)
    if not path.is_file():
        raise SimulationError(f"{path}: there is no such panorama; give an image file or one of shapes, boxes, poster")
    image = cv2.imread(str(path), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)
    if image is None:
        raise SimulationError(f"{path} is not an image that OpenCV reads; convert it to PNG or JPEG")
    height, width = image.shape[:2]
    if abs(width - 2 * height) > 2:
        raise SimulationError(f"{path} is {width} x {height}; an equirectangular panorama is twice as wide as high")
    if image.dtype in (np.uint8, np.uint16):
        white = 255.0 if image.dtype == np.uint8 else 65535.0
        encoded = np.asarray(image, np.float32) / white
        image = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    linear = image.astype(np.float32) @ np.array([0.0722, 0.7152, 0.2126], np.float32)  # OpenCV: blue green red
    width = min(width - width % 2, _MAX_WIDTH)
    if linear.shape != (width // 2, width):
        linear = np.asarray(cv2.resize(linear, (width, width // 2), interpolation=cv2.INTER_AREA), np.float32)
    return check_panorama(linear, str(path))
