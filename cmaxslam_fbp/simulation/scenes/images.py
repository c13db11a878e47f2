"""Scenes from image files and arrays: a 360 x 180 degree photograph, or a picture on a plane, as linear intensity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.errors import SimulationError

# Beyond it the sensor cannot tell the difference, and OpenCV's remapping ends at 32767.
_MAX_WIDTH = 8192


def check_panorama(panorama: npt.ArrayLike, name: str = "the panorama") -> SingleArray:
    """Return a panorama of linear intensity as float32 (width / 2, width), or say why it is none."""
    image = np.asarray(panorama)
    if image.ndim != 2 or image.shape[0] < 8 or image.shape[1] != 2 * image.shape[0]:
        raise SimulationError(
            f"{name} has the shape {image.shape}; an equirectangular panorama is grey and twice as wide as high"
        )
    image = np.ascontiguousarray(image, np.float32)
    _check_intensity(image, name)
    return image


def load_panorama(path: str | Path) -> SingleArray:
    """Load an equirectangular image as linear intensity (width / 2, width)."""
    import cv2

    path = Path(path)
    linear = _read_intensity(path, "panorama")
    height, width = linear.shape
    if abs(width - 2 * height) > 2:
        raise SimulationError(f"{path} is {width} x {height}; an equirectangular panorama is twice as wide as high")
    width = min(width - width % 2, _MAX_WIDTH)
    if linear.shape != (width // 2, width):
        linear = np.asarray(cv2.resize(linear, (width, width // 2), interpolation=cv2.INTER_AREA), np.float32)
    return check_panorama(linear, str(path))


def fit_plane_image(image: npt.ArrayLike, size: int, name: str = "the plane's image") -> SingleArray:
    """Return the middle square of an image of linear intensity, resized to (size, size), or say why it is none."""
    import cv2

    grey = np.ascontiguousarray(image, np.float32)
    if grey.ndim != 2 or min(grey.shape) < 8:
        raise SimulationError(f"{name} has the shape {grey.shape}; give a grey image of at least 8 x 8 pixels")
    _check_intensity(grey, name)
    side = min(grey.shape)
    top, left = ((length - side) // 2 for length in grey.shape)
    square = grey[top : top + side, left : left + side]
    way = cv2.INTER_AREA if side > size else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(square, (size, size), interpolation=way), np.float32)


def load_plane_image(path: str | Path, size: int) -> SingleArray:
    """Load the middle square of an image as linear intensity (size, size)."""
    return fit_plane_image(_read_intensity(Path(path), "picture"), size, str(path))


def _read_intensity(path: Path, what: str) -> SingleArray:
    """Read an image as linear intensity (height, width); colours become luminance. `what` it is, errors call it.

    Images of 8 or 16 bits are taken as sRGB.
    """
    import cv2

    if not path.is_file():
        raise SimulationError(f"{path}: there is no such {what}; give an image file or one of shapes, boxes, poster")
    image = cv2.imread(str(path), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)
    if image is None:
        raise SimulationError(f"{path} is not an image that OpenCV reads; convert it to PNG or JPEG")
    if image.dtype in (np.uint8, np.uint16):
        white = 255.0 if image.dtype == np.uint8 else 65535.0
        encoded = np.asarray(image, np.float32) / white
        image = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    # OpenCV's order: blue green red.
    return np.asarray(image.astype(np.float32) @ np.array([0.0722, 0.7152, 0.2126], np.float32))


def _check_intensity(image: SingleArray, name: str) -> None:
    """Refuse an image that holds anything but light."""
    if not np.isfinite(image).all() or image.min() < 0 or image.max() <= 0:
        raise SimulationError(f"{name} must hold finite intensities of 0 or more, and not only zeros")
