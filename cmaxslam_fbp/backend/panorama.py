"""The map: how many events each direction of the world has caused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend import panorama_kernels as kernels
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular


class PanoramaMap:
    """An equirectangular image of event counts that grows as the camera looks around.

    A pixel that has been in the field of view more than `max_visits` times is not updated any more.

    Attributes
    ----------
    image : (height, width) float32
        Event counts, `I_G`.
    visits : (height, width) int32
        How often each pixel was in the field of view when it was looked up.
    """

    def __init__(self, projection: Equirectangular, camera: Camera, max_visits: int) -> None:
        shape = projection.height, projection.width
        self.image: SingleArray = np.zeros(shape, np.float32)
        self.visits: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        self._max_visits = max_visits
        rows, columns = np.mgrid[: shape[0], : shape[1]]
        pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2)
        self._directions: SingleArray = np.ascontiguousarray(projection.unproject(pixels).T, np.float32)
        self._planes = field_of_view_planes(camera)

    def visit(self, R_wc: FloatArray) -> None:
        """Count the pixels that the camera sees."""
        planes = (self._planes @ R_wc.T).astype(np.float32)
        x, y, z = self._directions
        kernels.count_visits(x, y, z, planes, self.visits.reshape(-1))

    def add(self, region: Region, image: SingleArray) -> None:
        """Add an image of events, except where pixels have been visited often enough."""
        if int(self.visits.max()) > self._max_visits:
            open_pixels = region.cut_out((self.visits <= self._max_visits).astype(np.float32))
            image = image * open_pixels
        region.add_to(self.image, image)


def event_density(image: SingleArray) -> float:
    """`sum I / sum (1 - exp(-I))`: events per pixel that has any, softly counted; zero without events."""
    touched = float(-np.expm1(-image).sum(dtype=np.float64))
    return float(image.sum(dtype=np.float64)) / touched if touched > 0 else 0.0


def field_of_view_planes(camera: Camera) -> FloatArray:
    """Return the inward normals (4, 3), in the camera frame, of the planes around the undistorted sensor."""
    points = camera.undistorted_pixels()
    left, right = float(points[:, 0, 0].min()), float(points[:, -1, 0].max())
    top, bottom = float(points[0, :, 1].min()), float(points[-1, :, 1].max())
    return np.array([[1.0, 0.0, -left], [-1.0, 0.0, right], [0.0, 1.0, -top], [0.0, -1.0, bottom]])
