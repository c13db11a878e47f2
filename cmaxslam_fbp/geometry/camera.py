"""The pinhole camera with lens distortion, and the table of its pixels' directions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CalibrationError

DistortionModel = Literal["plumb_bob", "equidistant"]

# Number of coefficients that each model takes; shorter lists are filled with zeros.
COEFFICIENTS: dict[DistortionModel, int] = {"plumb_bob": 5, "equidistant": 4}

_ROUND_TRIP_PX = 0.05


@dataclass(frozen=True)
class Camera:
    """Intrinsics of a camera: x right, y down, z forward; pixel (0, 0) is centred at coordinate (0, 0).

    `distortion` is `k1 k2 p1 p2 k3` for `plumb_bob` (Brown-Conrady) and `k1 k2 k3 k4` for `equidistant`
    (Kannala-Brandt).
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    distortion_model: DistortionModel = "plumb_bob"

    def __post_init__(self) -> None:
        if self.distortion_model not in COEFFICIENTS:
            raise CalibrationError(
                f"the distortion model '{self.distortion_model}' is not known; use {' or '.join(COEFFICIENTS)}"
            )
        wanted = COEFFICIENTS[self.distortion_model]
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

    def project(self, directions: npt.ArrayLike) -> FloatArray:
        """Return the pixels (N, 2) that see the camera-frame directions (N, 3); all need `z > 0`."""
        import cv2

        rays = np.ascontiguousarray(directions, np.float64).reshape(-1, 1, 3)
        if len(rays) == 0:
            return np.empty((0, 2))
        zero, coefficients = np.zeros(3), np.array(self.distortion)
        if self.distortion_model == "equidistant":
            pixels, _ = cv2.fisheye.projectPoints(rays, zero, zero, self.matrix, coefficients)
        else:
            pixels, _ = cv2.projectPoints(rays, zero, zero, self.matrix, coefficients)
        return np.asarray(pixels, np.float64).reshape(-1, 2)

    def undistort(self, pixels: npt.ArrayLike) -> FloatArray:
        """Return the points (N, 2) of the normalised plane `z = 1` that the pixels (N, 2) see."""
        import cv2

        points = np.ascontiguousarray(pixels, np.float64).reshape(-1, 1, 2)
        if len(points) == 0:
            return np.empty((0, 2))
        criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-13)
        coefficients = np.array(self.distortion)
        if self.distortion_model == "equidistant":
            normalised = cv2.fisheye.undistortPoints(points, self.matrix, coefficients, criteria=criteria)
        else:
            normalised = cv2.undistortPoints(points, self.matrix, coefficients, criteria=criteria)
        return np.asarray(normalised, np.float64).reshape(-1, 2)

    def undistorted_pixels(self) -> FloatArray:
        """Return the normalised-plane point (height, width, 2) of every pixel of the sensor; not to be written to.

        Raises where the distortion cannot be inverted over the whole sensor: such coefficients are wrong.
        """
        return _undistorted_pixels(self)

    def bearings(self) -> FloatArray:
        """Return the unit direction (height, width, 3) that every pixel of the sensor sees."""
        points = self.undistorted_pixels()
        rays = np.concatenate([points, np.ones((*points.shape[:2], 1))], axis=-1)
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True)


@lru_cache(maxsize=8)
def _undistorted_pixels(camera: Camera) -> FloatArray:
    """Invert the distortion at every pixel, once per camera."""
    rows, columns = np.mgrid[: camera.height, : camera.width]
    pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2).astype(np.float64)
    points = camera.undistort(pixels)
    returned = camera.project(np.column_stack([points, np.ones(len(points))]))
    error_px = np.linalg.norm(returned - pixels, axis=1)
    if not (error_px < _ROUND_TRIP_PX).all():
        worst = pixels[np.argmax(np.nan_to_num(error_px, nan=np.inf))].astype(int)
        raise CalibrationError(
            f"the distortion {camera.distortion} cannot be inverted at pixel ({worst[0]}, {worst[1]}): "
            f"check the coefficients, their order and the sensor size {camera.width} x {camera.height}"
        )
    points.setflags(write=False)
    return points.reshape(camera.height, camera.width, 2)


def davis240c() -> Camera:
    """Return the DAVIS240C of the Event Camera Dataset, with the calibration of its rotation sequences."""
    return Camera(240, 180, 199.092, 198.829, 132.192, 110.713, (-0.368436, 0.150947, -0.000296, -0.000759, 0.0))


def dvxplorer() -> Camera:
    """Return a typical DVXplorer: 640 x 480 pixels, mild distortion."""
    return Camera(640, 480, 535.0, 535.0, 320.0, 240.0, (-0.09, 0.11, 0.0002, -0.0003, 0.0))
