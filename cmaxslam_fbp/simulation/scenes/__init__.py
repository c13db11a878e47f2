"""Scenes: images of linear intensity, float32, drawn or loaded: panoramas around the camera, and flat ones before it.

A panorama (width / 2, width) is equirectangular: a direction (X, Y, Z) of the world (x right, y down, z forward) is
seen at `x = w/2 + f atan2(X, Z)`, `y = h/2 + f asin(Y / |P|)` with `f = w / 2 pi`; whole coordinates are pixel centres.
A flat scene (size, size) has the same figures, about as large as the panorama's when seen from a distance of one unit.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.simulation.scenes.boxes import draw_boxes, draw_flat_boxes
from cmaxslam_fbp.simulation.scenes.images import check_panorama, load_panorama
from cmaxslam_fbp.simulation.scenes.poster import draw_flat_poster, draw_poster
from cmaxslam_fbp.simulation.scenes.shapes import draw_flat_shapes, draw_shapes
from cmaxslam_fbp.simulation.scenes.stars import draw_flat_stars, draw_stars

SCENES = {"shapes": draw_shapes, "boxes": draw_boxes, "poster": draw_poster, "stars": draw_stars}
FLAT_SCENES = {
    "shapes": draw_flat_shapes,
    "boxes": draw_flat_boxes,
    "poster": draw_flat_poster,
    "stars": draw_flat_stars,
}

_MAX_WIDTH = 4096


def draw_scene(scene: str | Path | npt.NDArray[np.floating], focal: float, seed: int) -> SingleArray:
    """Return the panorama of a name (drawn with `focal` pixels per radian), of an image file, or of an array."""
    if isinstance(scene, np.ndarray):
        return check_panorama(scene)
    if str(scene) not in SCENES:
        return load_panorama(scene)
    width = int(np.clip(64 * np.ceil(2 * np.pi * focal / 64), 512, _MAX_WIDTH))
    return SCENES[str(scene)](width, seed)
