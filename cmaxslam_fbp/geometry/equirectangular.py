"""The equirectangular projection: a panorama whose columns are longitudes and whose rows are latitudes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

# Derivatives of the column grow as one over the cosine of the latitude; where it is smaller, they are damped.
MIN_COS_LATITUDE = 1e-3


@dataclass(frozen=True)
class Equirectangular:
    """`x = w/2 + f atan2(X, Z)`, `y = h/2 + f asin(Y / |P|)` with `f = w / (2 pi)` pixels per radian.

    World axes are those of a camera at rest: X right, Y down, Z forward. The forward direction is in the middle of the
    panorama, the right is right of it, down is below. Pixel (0, 0) is centred at coordinate (0, 0).

    Columns wrap: `x` and `x + w` are the same direction, and `project` returns `0 <= x < w`; a value between `w - 1`
    and `w` lies between the last column and the first one. Rows do not wrap: the poles are at `y = h/2 - w/4` (up)
    and `y = h/2 + w/4` (down), which is 0 and `h` where `w = 2 h`.

    At a pole the longitude is undefined. `project` returns `x = w/2` there. Where the cosine of the latitude, `rho/|P|`
    with `rho^2 = X^2 + Z^2`, is below `MIN_COS_LATITUDE` (0.06 degrees from the pole), derivatives of `x` have `rho^2`
    replaced by `(MIN_COS_LATITUDE |P|)^2`: for unit directions they are bounded by `f / MIN_COS_LATITUDE`, and but for
    that by a turn about Y, which is `f` everywhere, they fall to zero at the pole. Derivatives of `y` are bounded by
    `f` anyway; at the pole itself, where `y` has its extreme, they are zero.
    """

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"the panorama size {self.width} x {self.height} is not positive")

    @property
    def focal_px(self) -> float:
        """Pixels per radian."""
        return self.width / (2 * np.pi)

    def project(self, directions: npt.ArrayLike) -> FloatArray:
        """Return the pixels (..., 2) of directions (..., 3) of any length but zero."""
        X, Y, Z = np.moveaxis(np.asarray(directions, np.float64), -1, 0)
        x = self.width / 2 + self.focal_px * np.arctan2(X, np.where((X == 0) & (Z == 0), 1.0, Z))
        # The arcsine as an arctangent: as precise at the poles as elsewhere.
        y = self.height / 2 + self.focal_px * np.arctan2(Y, np.hypot(X, Z))
        return np.stack([np.where(x >= self.width, x - self.width, np.maximum(x, 0)), y], axis=-1)

    def unproject(self, pixels: npt.ArrayLike) -> FloatArray:
        """Return the unit directions (..., 3) of pixels (..., 2); columns outside the panorama wrap."""
        p = np.asarray(pixels, np.float64)
        longitude = (p[..., 0] - self.width / 2) / self.focal_px
        latitude = (p[..., 1] - self.height / 2) / self.focal_px
        level = np.cos(latitude)
        return np.stack([level * np.sin(longitude), np.sin(latitude), level * np.cos(longitude)], axis=-1)

    def jacobian(self, directions: npt.ArrayLike) -> FloatArray:
        """Return `d(x, y) / dP` (..., 2, 3) for directions (..., 3) of any length but zero.

        With `rho^2 = X^2 + Z^2` and `r^2 = rho^2 + Y^2`:
        `dx/dP = f (Z, 0, -X) / rho^2`, `dy/dP = f (-X Y / rho, rho, -Y Z / rho) / r^2`.
        """
        X, Y, Z = np.moveaxis(np.asarray(directions, np.float64), -1, 0)
        rho, bounded_square, rho_or_one = self._distances_from_axis(X, Y, Z)
        square = rho**2 + Y**2
        zero = np.zeros_like(X)
        dx = np.stack([Z / bounded_square, zero, -X / bounded_square], axis=-1)
        dy = np.stack([-X / rho_or_one * Y / square, rho / square, -Z / rho_or_one * Y / square], axis=-1)
        return self.focal_px * np.stack([dx, dy], axis=-2)

    def rotation_jacobian(self, directions: npt.ArrayLike) -> FloatArray:
        """Return `d(x, y) / d delta` (..., 2, 3) in px/rad, for directions (..., 3) that turn by `exp(delta) P`.

        `d(x, y)/dP (-[P]x) = f [[-X Y / rho^2, 1, -Y Z / rho^2], [-Z / rho, 0, X / rho]]`.
        """
        X, Y, Z = np.moveaxis(np.asarray(directions, np.float64), -1, 0)
        _, bounded_square, rho_or_one = self._distances_from_axis(X, Y, Z)
        dx = np.stack([-X * Y / bounded_square, np.ones_like(X), -Y * Z / bounded_square], axis=-1)
        dy = np.stack([-Z / rho_or_one, np.zeros_like(X), X / rho_or_one], axis=-1)
        return self.focal_px * np.stack([dx, dy], axis=-2)

    @staticmethod
    def _distances_from_axis(X: FloatArray, Y: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `rho`, `rho^2` bounded from below, and `rho` with 1 for 0."""
        rho = np.hypot(X, Z)
        least = MIN_COS_LATITUDE * np.hypot(rho, Y)
        return rho, np.maximum(rho, least) ** 2, np.where(rho == 0, 1.0, rho)
