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

    Where a direction turns by `exp(delta) P`, with `rho^2 = X^2 + Z^2`:
    `d(x, y)/d delta = f [[-X Y / rho^2, 1, -Y Z / rho^2], [-Z / rho, 0, X / rho]]` in px/rad.

    At a pole the longitude is undefined. `project` returns `x = w/2` there. Where the cosine of the latitude,
    `rho/|P|`, is below `MIN_COS_LATITUDE` (0.06 degrees from the pole), derivatives of `x` have `rho^2` replaced by
    `(MIN_COS_LATITUDE |P|)^2`: they are bounded by `f / MIN_COS_LATITUDE`, and but for that by a turn about Y, which is
    `f` everywhere, they fall to zero at the pole. Derivatives of `y` are bounded by `f` anyway; at the pole itself,
    where `y` has its extreme, they are zero.
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
