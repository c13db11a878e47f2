"""Linear intensity from an image file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError


def read_intensity(path: Path, what: str) -> npt.NDArray[np.float32]:
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


def check_intensity(image: npt.NDArray[np.float32], name: str) -> None:
    """Refuse an image that holds anything but light."""
    if not np.isfinite(image).all() or image.min() < 0 or image.max() <= 0:
        raise SimulationError(f"{name} must hold finite intensities of 0 or more, and not only zeros")
