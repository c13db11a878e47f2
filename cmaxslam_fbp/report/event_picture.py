"""Events as an image: where they were on the sensor, or where they come to lie when the camera's rotation is undone."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation

_MIN_DEPTH = 0.05  # directions that are further than 87 degrees off the axis are not drawn


class EventPicture:
    """Counts events on the image of an ideal camera, without lens distortion.

    Parameters
    ----------
    camera : Camera
        The one that recorded the events.
    view : Camera, optional
        The one that looks at them: by default the same without its distortion.
    """

    def __init__(self, camera: Camera, view: Camera | None = None) -> None:
        self.view = view or camera.without_distortion()
        self._bearings = camera.bearings()

    def count(self, events: Events, turns: Rotation | None = None) -> SingleArray:
        """Return the image (height, width) of N events, each shared between the four pixels around its place.

        `turns` are the N rotations `R_view^T R_wc(t)` from the camera at each event to the view; none for no motion.
        """
        directions = self._bearings[events.y, events.x]
        if turns is not None:
            directions = turns.apply(directions)
        directions = directions[directions[:, 2] > _MIN_DEPTH]
        return _share(self.view.project(directions), self.view.height, self.view.width)


def _share(pixels: FloatArray, height: int, width: int) -> SingleArray:
    """Add each of the points (N, 2) to its four neighbours, by bilinear weights."""
    inside = (pixels > -1).all(axis=1) & (pixels < (width, height)).all(axis=1)
    corner = np.floor(pixels[inside]).astype(np.intp)
    x, y = (pixels[inside] - corner).T
    image = np.zeros((height + 2) * (width + 2))
    place = (corner[:, 1] + 1) * (width + 2) + corner[:, 0] + 1
    for offset, weight in (
        (0, (1 - x) * (1 - y)),
        (1, x * (1 - y)),
        (width + 2, (1 - x) * y),
        (width + 3, x * y),
    ):
        image += np.bincount(place + offset, weight, minlength=len(image))
    return image.reshape(height + 2, width + 2)[1:-1, 1:-1].astype(np.float32)
