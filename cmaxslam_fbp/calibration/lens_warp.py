"""The events of a recording on the panorama, as a function of the camera's rotation and of its lens."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.panoramic_warp_kernels import look_up, pullback_to_pixels
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

_SLOT_NS = 5_000_000  # time over which the rotation is taken as linear


class LensWarp(PanoramicWarp):
    """Carries events to the panorama: `p_i = pi(R(t_i) b(x_i))`, with directions `b` of the pixels that may change.

    Parameters
    ----------
    events : ordered by time, all within the spline
    bearings : (height, width, 3) float32, the direction that every pixel sees at first
    projection : the panorama
    spline : whose time the warp covers
    """

    def __init__(
        self, events: Events, bearings: SingleArray, projection: Equirectangular, spline: RotationSpline
    ) -> None:
        super().__init__(events, bearings, projection, spline.start_ns, spline.end_ns, _SLOT_NS)
        self._x, self._y = events.x, events.y

    def see(self, bearings: SingleArray) -> None:
        """Let the pixels see in other directions (height, width, 3)."""
        look_up(self._x, self._y, bearings, self._bearings)

    def at_pixels(self, table: SingleArray) -> SingleArray:
        """Return for every event (N,) what a table (height, width) has at its pixel."""
        return table[self._y, self._x]

    def sum_at_pixels(self, values: SingleArray, shape: tuple[int, int]) -> FloatArray:
        """Return the sums (height, width) of the values (N,) of each pixel's events."""
        places = self._y.astype(np.int64) * shape[1] + self._x
        sums = np.bincount(places, values, minlength=shape[0] * shape[1])
        return np.asarray(sums.reshape(shape), np.float64)

    def pullback_bearings(self, rotations: SingleArray, points_bar: SingleArray, shape: tuple[int, int]) -> FloatArray:
        """Return the gradient (height, width, 3) by the directions that the pixels see."""
        table = np.zeros((*shape, 3))
        pullback_to_pixels(
            self._first, self._place, self._x, self._y, self._bearings, rotations,
            np.float32(self.projection.focal_px), points_bar.reshape(-1), table,
        )  # fmt: skip
        return table
