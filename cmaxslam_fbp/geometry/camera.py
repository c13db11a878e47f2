"""The camera with its lens, and the table of its pixels' directions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.lenses import LENSES

MAX_OFF_AXIS_DEG = 80.0  # beyond it nothing is seen: points of the plane `z = 1` run away
_ROUND_TRIP_PX = 1e-3
_BLOCK = 1 << 14  # pixels whose lens is inverted at a time: it takes dozens of arrays, which the cache should hold
# The part of a sensor on which a lens must see: the wide ones may leave its corners, or all around a circle, dark.
_LEAST_SEEN, _LEAST_SEEN_WIDE = 0.9, 0.25


@dataclass(frozen=True)
class Camera:
    """Intrinsics of a camera: x right, y down, z forward; pixel (0, 0) is centred at coordinate (0, 0).

    `distortion` are the coefficients of the lens model `distortion_model`, in the order that `lenses` names them:
    `k1 k2 p1 p2 k3` for `plumb_bob` (Brown-Conrady), `k1 k2 k3 k4` for `equidistant` (Kannala-Brandt).
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    distortion_model: str = "plumb_bob"

    def __post_init__(self) -> None:
        if self.distortion_model not in LENSES:
            raise CalibrationError(
                f"the lens model '{self.distortion_model}' is not known; use one of {', '.join(LENSES)}"
            )
        wanted = len(LENSES[self.distortion_model].coefficients)
        given = tuple(float(c) for c in self.distortion)
        if any(given[wanted:]):
            raise CalibrationError(
                f"a {self.distortion_model} distortion has at most {wanted} coefficients, not {len(given)}"
            )
        object.__setattr__(self, "distortion", (given + (0.0,) * wanted)[:wanted])
        if self.width < 1 or self.height < 1:
            raise CalibrationError(f"the sensor size {self.width} x {self.height} is not positive")
        numbers = np.array([self.fx, self.fy, self.cx, self.cy, *self.distortion])
        if not np.isfinite(numbers).all() or self.fx <= 0 or self.fy <= 0:
            raise CalibrationError(
                f"the intrinsics fx={self.fx} fy={self.fy} cx={self.cx} cy={self.cy} "
                f"with distortion {self.distortion} are not those of a camera"
            )

    @property
    def matrix(self) -> FloatArray:
        """The matrix `K` (3, 3)."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1]])

    def scaled(self, factor: float, width: int, height: int) -> Camera:
        """Return the same camera at another resolution, of which `factor` pixels cover one of this."""
        cx, cy = ((centre + 0.5) * factor - 0.5 for centre in (self.cx, self.cy))
        return replace(self, width=width, height=height, fx=self.fx * factor, fy=self.fy * factor, cx=cx, cy=cy)

    def without_distortion(self) -> Camera:
        """Return the pinhole camera that is like this one near the axis."""
        factor = LENSES[self.distortion_model].magnification(self.distortion)
        return Camera(self.width, self.height, self.fx * factor, self.fy * factor, self.cx, self.cy)

    def project(self, directions: npt.ArrayLike) -> FloatArray:
        """Return the pixels (N, 2) that see the camera-frame directions (N, 3); all need `z > 0`."""
        rays = np.asarray(directions, np.float64).reshape(-1, 3)
        with np.errstate(all="ignore"):
            points = LENSES[self.distortion_model].project(rays, self.distortion)
        return np.asarray(points * (self.fx, self.fy) + (self.cx, self.cy))

    def undistort(self, pixels: npt.ArrayLike) -> FloatArray:
        """Return the points (N, 2) of the normalised plane `z = 1` that the pixels (N, 2) see.

        NaN where the lens does not see: beyond the range of its model, or far off the axis.
        """
        places = np.asarray(pixels, np.float64).reshape(-1, 2)
        points = (places - (self.cx, self.cy)) / (self.fx, self.fy)
        with np.errstate(all="ignore"):
            rays = LENSES[self.distortion_model].unproject(points, self.distortion)
            radius = np.hypot(rays[:, 0], rays[:, 1])
            is_seen = (rays[:, 2] > 0) & (radius < np.tan(np.radians(MAX_OFF_AXIS_DEG)) * rays[:, 2])
        seen = np.full((len(places), 2), np.nan)
        seen[is_seen] = rays[is_seen, :2] / rays[is_seen, 2:]
        if is_seen.any():
            returned = self.project(np.column_stack([seen[is_seen], np.ones(int(is_seen.sum()))]))
            wrong = ~(np.hypot(*(returned - places[is_seen]).T) < _ROUND_TRIP_PX)
            seen[np.flatnonzero(is_seen)[wrong]] = np.nan
        return seen

    def undistorted_pixels(self) -> FloatArray:
        """Return the normalised-plane point (height, width, 2) of every pixel of the sensor; not to be written to.

        Pixels on which the lens does not see have the mean of the others: `seen_pixels` tells them. Raises where they
        are too many: such coefficients are wrong.
        """
        return _undistorted_pixels(self)[0]

    def px_per_rad(self) -> FloatArray:
        """Return by how many pixels a turn about each axis moves the image (3,), in the mean over the sensor."""
        radius_px = np.hypot(self.width, self.height) / np.sqrt(12)  # RMS distance from the middle
        return np.array([self.fy, self.fx, radius_px])

    def seen_pixels(self) -> npt.NDArray[np.bool_]:
        """Return which pixels (height, width) the lens sees on; not to be written to."""
        return _undistorted_pixels(self)[1]

    def bearings(self) -> FloatArray:
        """Return the unit direction (height, width, 3) that every pixel of the sensor sees."""
        rays = np.ones((self.height, self.width, 3))
        rays[..., :2] = self.undistorted_pixels()
        for row in rays:
            row /= np.linalg.norm(row, axis=-1, keepdims=True)
        return rays


@lru_cache(maxsize=8)
def _undistorted_pixels(camera: Camera) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Invert the lens at every pixel, once per camera."""
    grid = np.empty((camera.height, camera.width, 2))
    grid[..., 0], grid[..., 1] = np.arange(camera.width), np.arange(camera.height)[:, None]
    pixels = grid.reshape(-1, 2)
    points = np.concatenate([camera.undistort(part) for part in np.split(pixels, range(_BLOCK, len(pixels), _BLOCK))])
    seen = np.isfinite(points).all(axis=1)
    least = _LEAST_SEEN_WIDE if LENSES[camera.distortion_model].is_wide else _LEAST_SEEN
    if seen.mean() < least:
        off_axis = np.linalg.norm(pixels - (camera.cx, camera.cy), axis=1)
        nearest = pixels[np.argmin(np.where(seen, np.inf, off_axis))].astype(int)
        raise CalibrationError(
            f"the distortion {camera.distortion} cannot be inverted at pixel ({nearest[0]}, {nearest[1]}): "
            f"check the coefficients, their order and the sensor size {camera.width} x {camera.height}"
        )
    points[~seen] = points[seen].mean(axis=0)
    points.setflags(write=False)
    seen.setflags(write=False)
    return points.reshape(camera.height, camera.width, 2), seen.reshape(camera.height, camera.width)


def davis240c() -> Camera:
    """Return the DAVIS240C of the Event Camera Dataset, with the calibration of its rotation sequences."""
    return Camera(240, 180, 199.092, 198.829, 132.192, 110.713, (-0.368436, 0.150947, -0.000296, -0.000759, 0.0))


def dvxplorer() -> Camera:
    """Return a typical DVXplorer: 640 x 480 pixels, mild distortion."""
    return Camera(640, 480, 535.0, 535.0, 320.0, 240.0, (-0.09, 0.11, 0.0002, -0.0003, 0.0))


def evk4() -> Camera:
    """Return a Prophesee EVK4 (IMX636): 1280 x 720 pixels of 4.86 um, behind a lens of 60 degrees."""
    return Camera(1280, 720, 1108.5, 1108.5, 639.5, 359.5, (-0.1, 0.08, 0.0001, -0.0002, 0.0))


def genx320() -> Camera:
    """Return a Prophesee GenX320: 320 x 320 pixels of 6.3 um, behind a lens of 60 degrees."""
    return Camera(320, 320, 277.1, 277.1, 159.5, 159.5, (-0.1, 0.08, 0.0001, -0.0002, 0.0))
