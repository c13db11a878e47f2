"""What events weigh by the area of the map that their pixel covers, so that drawing the map apart does not pay."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.calibration.bearing_grid import BearingGrid, LensView
from cmaxslam_fbp.calibration.lens_warp import LensWarp

_HIGHEST_RAD = 1.5  # latitude: what is nearer to a pole weighs no more


class AreaWeights:
    """`w_i = (a(x_i) f^2 / cos(lat_i))^e` of events at pixels `x_i`, with the solid angle `a` that a pixel covers.

    That is the area on the map over that on the sensor: `f` are pixels of the map per radian at its equator, and the
    equirectangular map draws everything apart by `1 / cos(lat)` across. Without that factor a lens would be
    rewarded for bringing events nearer to the equator, as too long a focal length does.

    Parameters
    ----------
    grid : nodes over the sensor, on which areas are computed
    warp : the events
    first_row : row of the panorama that points count from
    exponent : `e`
    """

    def __init__(self, grid: BearingGrid, warp: LensWarp, first_row: int, exponent: float) -> None:
        self._grid, self._warp, self._exponent = grid, warp, np.float32(exponent)
        self._equator = np.float32(warp.projection.height / 2 - first_row)
        self._focal_px = np.float32(warp.projection.focal_px)

    def weigh(self, view: LensView, points: SingleArray, focal_px: float, out: SingleArray) -> None:
        """Write the weights (N,) of events at points (N, 2) of the map, which the nodes' view of a lens led to."""
        areas, self._by_log = self._grid.areas(view)
        nodes = (areas * focal_px**2) ** self._exponent
        latitudes = (points[:, 0] - self._equator) / self._focal_px
        np.clip(latitudes, -_HIGHEST_RAD, _HIGHEST_RAD, out=latitudes)
        out[:] = self._warp.at_pixels(self._grid.expand(nodes).astype(np.float32))
        out *= np.cos(latitudes) ** -self._exponent
        self._nodes, self._latitudes, self._weights = nodes, latitudes, out

    def pullback(self, weights_bar: SingleArray, shape: tuple[int, int]) -> tuple[FloatArray, SingleArray]:
        """Return the gradients by the lens parameters (P,), at a given `f`, and by the rows (N,) of the points.

        `d log w = e (d log a + tan(lat) d lat)`, and rows are latitudes times `f`.
        """
        by_log = self._exponent * weights_bar * self._weights
        shares = self._grid.gather(self._warp.sum_at_pixels(by_log, shape))
        return np.einsum("nm,nmj->j", shares, self._by_log), by_log * np.tan(self._latitudes) / self._focal_px
