"""A flat scene from an image file or an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.scenes.intensity_image import check_intensity, read_intensity


def fit_plane_image(image: npt.ArrayLike, size: int, name: str = "the plane's image") -> npt.NDArray[np.float32]:
    """Return the middle square of an image of linear intensity, resized to (size, size), or say why it is none."""
    import cv2

    grey = np.ascontiguousarray(image, np.float32)
    if grey.ndim != 2 or min(grey.shape) < 8:
        raise SimulationError(f"{name} has the shape {grey.shape}; give a grey image of at least 8 x 8 pixels")
    check_intensity(grey, name)
    side = min(grey.shape)
    top, left = ((length - side) // 2 for length in grey.shape)
    square = grey[top : top + side, left : left + side]
    way = cv2.INTER_AREA if side > size else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(square, (size, size), interpolation=way), np.float32)


def load_plane_image(path: str | Path, size: int) -> npt.NDArray[np.float32]:
    """Load the middle square of an image as linear intensity (size, size)."""
    return fit_plane_image(read_intensity(Path(path), "picture"), size, str(path))
