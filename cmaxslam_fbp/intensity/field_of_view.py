"""Where a camera has looked."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.backend.panorama import add_visits, field_of_view_planes
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

LOOK_UP_NS = 20_000_000  # a good time between two orientations
_FEWEST_VISITS = 5  # what was in view for less than a tenth of a second is hardly known
_WIDTH = 512  # of the panorama that visits are counted on


def seen_part(camera: Camera, rotations: FloatArray, projection: Equirectangular) -> npt.NDArray[np.bool_]:
    """Return which pixels (height, width) a camera has had in view in some of its orientations `R_wc` (M, 3, 3).

    These are its orientations every `LOOK_UP_NS`.
    """
    factor = max(projection.width // _WIDTH, 1)
    coarse = Equirectangular(-(-projection.width // factor), -(-projection.height // factor))
    visits = np.zeros((coarse.height, coarse.width), np.uint16)
    add_visits(visits, field_of_view_planes(camera), rotations)
    seen = (visits >= _FEWEST_VISITS).astype(np.float32)
    size = projection.width, projection.height
    return np.asarray(cv2.resize(seen, size, interpolation=cv2.INTER_LINEAR) > 0.5)
