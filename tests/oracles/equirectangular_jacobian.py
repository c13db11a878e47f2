"""The derivative of the equirectangular projection by turns, in float64: what the compiled forms are compared with."""

import numpy as np

from cmaxslam_fbp.geometry.equirectangular import MIN_COS_LATITUDE


def rotation_jacobian(projection, directions):
    """`d(x, y) / d delta` (..., 2, 3), px/rad, for turns `exp(delta) P`; bounded at poles as `Equirectangular` says."""
    X, Y, Z = np.moveaxis(np.asarray(directions, np.float64), -1, 0)
    rho = np.hypot(X, Z)
    bounded = np.maximum(rho, MIN_COS_LATITUDE * np.hypot(rho, Y)) ** 2
    rho = np.where(rho == 0, 1.0, rho)
    dx = np.stack([-X * Y / bounded, np.ones_like(X), -Y * Z / bounded], axis=-1)
    dy = np.stack([-Z / rho, np.zeros_like(X), X / rho], axis=-1)
    return projection.focal_px * np.stack([dx, dy], axis=-2)
