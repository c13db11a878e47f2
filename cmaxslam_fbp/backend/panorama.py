"""The map: how many events each direction of the world has caused."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend import panorama_kernels as kernels
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.backend.tracking import correlation
from cmaxslam_fbp.backend.window_objective import View
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S

Span = tuple[int, int]  # the first and the end

VISIT_NS = 50_000_000  # the field of view is looked up this often
_WIDTH_STEP, _MOST_COLUMNS = 512, 4096  # of a map that is as fine as the sensor
_FEWEST_VISITS = 8  # of a pixel whose map a window is compared with: one that was hardly seen says little


class PanoramaMap:
    """An equirectangular image of event counts that grows as the camera looks around.

    Attributes
    ----------
    image : (height, width) float32
        Event counts, `I_G`.
    visits : (height, width) uint16
        How often each pixel was in the field of view when it was looked up, up to `MOST_VISITS`.
    planes : (4, 3) float64
        Inward normals of the planes around the field of view, in the camera frame.
    """

    def __init__(self, config: BackendConfig, camera: Camera) -> None:
        self._config = config
        width, height = map_size(config, camera)
        self.visits: npt.NDArray[np.uint16] = np.zeros((height, width), np.uint16)
        self.image: SingleArray = np.zeros((height, width), np.float32)
        self.planes = field_of_view_planes(camera)
        self._looks: npt.NDArray[np.uint16] | None = None  # of a map whose events were added everywhere

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.image.shape[1], self.image.shape[0]

    @property
    def looks(self) -> npt.NDArray[np.uint16]:
        """How often each pixel was in view while its events were added (height, width)."""
        return np.minimum(self.visits, self._config.max_visits) if self._looks is None else self._looks

    def weighted(self, known: SingleArray, window_image: SingleArray) -> SingleArray:
        """Return `alpha I_G` (rows, columns): the map on a region, as dense as the image of a window there.

        `alpha` is the ratio of the event densities of the window and of the map, which is taken on the region, or
        everywhere.
        """
        density = event_density(self.image if self._config.map_weight == "whole" else known)
        alpha = event_density(window_image) / density if density > 0 else 0.0
        return np.asarray(known * np.float32(alpha), np.float32)

    def match(self, view: View, window_image: SingleArray) -> float | None:
        """Return how well the image of a window agrees with the map before it, where that is well known; or None."""
        visits = np.minimum(view.region.cut_out(self.visits), self._config.max_visits)
        visits[visits < _FEWEST_VISITS] = 0
        return correlation(window_image, view.known, visits)

    def seen_s(self, region: Region, image: SingleArray) -> float:
        """Return for how long the camera has seen the places of an image of events, in the mean over the events."""
        visits = float((image * region.cut_out(self.visits)).sum(dtype=np.float64))
        return visits / max(float(image.sum(dtype=np.float64)), 1.0) * VISIT_NS / NS_PER_S

    def blocks(self, factor: int) -> SingleArray:
        """Return `sqrt(events per visit)` in blocks of `factor` x `factor` pixels; -1 where half is not well known."""
        visits = np.minimum(self.visits, self._config.max_visits)
        is_known = visits >= _FEWEST_VISITS
        known, events, visited = (
            _block_sums(values, factor) for values in (is_known, self.image * is_known, visits * is_known)
        )
        return np.where(2 * known >= factor**2, np.sqrt(events / np.maximum(visited, 1)), -1).astype(np.float32)

    def visit(self, rotations: FloatArray) -> None:
        """Count the pixels that the camera sees in each of the orientations `R_wc` (M, 3, 3)."""
        add_visits(self.visits, self.planes, rotations)

    def add(self, region: Region, image: SingleArray) -> None:
        """Add an image of events, except at pixels that were in the field of view more than `max_visits` times."""
        is_open = region.cut_out(self.visits) <= self._config.max_visits
        region.add_to(self.image, image if is_open.all() else image * is_open)

    def replace(self, region: Region, old: SingleArray | float, new: SingleArray) -> None:
        """Put an image in the place of one that was added before."""
        region.add_to(self.image, new - old)
        region.make_positive(self.image)

    def emptied(self) -> PanoramaMap:
        """Return a map without events, on which no pixel was seen yet: what is added to it is added everywhere."""
        other = copy(self)
        other._looks = self.visits if self._looks is None else self._looks
        other.image, other.visits = np.zeros_like(self.image), np.zeros_like(self.visits)
        return other


def map_size(config: BackendConfig, camera: Camera) -> tuple[int, int]:
    """Return the width and height of the map: as configured, or about as fine as the middle of the sensor.

    A pixel per pixel is `2 pi f` columns; a little coarser loses nothing, and gathers more events in each.
    """
    if config.panorama_size != "auto":
        return config.panorama_size
    columns = 2 * np.pi * np.sqrt(camera.fx * camera.fy)
    width = int(np.clip(_WIDTH_STEP * (columns // _WIDTH_STEP), _WIDTH_STEP, _MOST_COLUMNS))
    return width, width // 2


def add_visits(visits: npt.NDArray[np.uint16], planes: FloatArray, rotations: FloatArray) -> None:
    """Count the pixels of a panorama (height, width) inside planes (4, 3), for orientations `R_wc` (M, 3, 3).

    Only those are looked at that are as near to the optical axis as a corner of the field of view.
    """
    height, width = visits.shape
    angles = ((np.arange(size) - size / 2) * 2 * np.pi / width for size in (width, height))
    circles = [np.stack([np.sin(angle), np.cos(angle)]).astype(np.float32) for angle in angles]
    left, right, top, bottom = planes
    corners = np.array([np.cross(one, other) for one in (left, right) for other in (top, bottom)])
    reach = np.arccos(np.min(np.abs(corners[:, 2]) / np.linalg.norm(corners, axis=1)))
    for R_wc in rotations:
        turned = (planes @ R_wc.T).astype(np.float32)
        rows, spans = _cap(R_wc[:, 2], reach, height, width)
        for columns in spans:
            kernels.count_visits(*circles, turned, rows, columns, visits)


def _cap(axis: FloatArray, reach: float, height: int, width: int) -> tuple[Span, list[Span]]:
    """Return rows and columns of a panorama with all directions within an angle of an axis (3,), by first and end.

    At a latitude `phi` such a cap reaches `asin(sin(reach) / cos(phi))` to either side, or holds a pole. The columns
    are two parts, before the seam and behind it.
    """
    focal_px = width / (2 * np.pi)
    latitude, longitude = np.arcsin(np.clip(axis[1], -1, 1)), np.arctan2(axis[0], axis[2])
    middle = height / 2 + focal_px * latitude
    rows = max(int(middle - focal_px * reach), 0), min(int(middle + focal_px * reach) + 2, height)
    if abs(latitude) + reach >= np.pi / 2:
        return rows, [(0, width)]
    aside_px = focal_px * np.arcsin(np.sin(reach) / np.cos(latitude))
    first = int(width / 2 + focal_px * longitude - aside_px) % width  # whole turns are added by the modulo
    end = first + min(int(2 * aside_px) + 3, width)
    return rows, [(first, min(end, width)), (0, max(end - width, 0))]


def _block_sums(image: npt.NDArray[Any], factor: int) -> FloatArray:
    """Return the sums over blocks of `factor` x `factor` pixels; the last ones may be smaller."""
    rows, columns = (np.arange(0, size, factor) for size in image.shape)
    return np.add.reduceat(np.add.reduceat(image, rows, axis=0, dtype=np.float64), columns, axis=1)


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
