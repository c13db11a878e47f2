"""The left Jacobian of rotation vectors and its inverse, vectorised and safe at zero.

It links small changes of a rotation vector to small rotations on the left: `exp(phi + d) = exp(J_l(phi) d) exp(phi)` to
first order in `d`. The right one is `J_r(phi) = J_l(-phi)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

_SMALL_ANGLE_RAD = 1e-2  # below it the Taylor series are exact to the last bit that matters


def hat(vectors: npt.ArrayLike) -> FloatArray:
    """Return the matrices `[v]x` (..., 3, 3) with `[v]x u = v x u` for vectors (..., 3)."""
    v = np.asarray(vectors, np.float64)
    matrices = np.zeros((*v.shape, 3))
    matrices[..., 0, 1], matrices[..., 0, 2] = -v[..., 2], v[..., 1]
    matrices[..., 1, 0], matrices[..., 1, 2] = v[..., 2], -v[..., 0]
    matrices[..., 2, 0], matrices[..., 2, 1] = -v[..., 1], v[..., 0]
    return matrices


def left_jacobian(rotation_vectors: npt.ArrayLike) -> FloatArray:
    """`J_l(phi) = I + (1 - cos a)/a^2 [phi]x + (a - sin a)/a^3 [phi]x^2`, with `a = |phi|`: (..., 3, 3)."""
    phi = np.asarray(rotation_vectors, np.float64)
    angle = np.linalg.norm(phi, axis=-1)[..., None, None]
    small = angle < _SMALL_ANGLE_RAD
    a = np.where(small, 1.0, angle)
    a2 = angle**2
    first = np.where(small, 1 / 2 - a2 / 24 + a2**2 / 720, (1 - np.cos(a)) / a**2)
    second = np.where(small, 1 / 6 - a2 / 120 + a2**2 / 5040, (a - np.sin(a)) / a**3)
    cross = hat(phi)
    return np.eye(3) + first * cross + second * (cross @ cross)


def left_jacobian_inverse(rotation_vectors: npt.ArrayLike) -> FloatArray:
    """`J_l(phi)^-1 = I - [phi]x / 2 + (1/a^2 - cot(a/2) / (2a)) [phi]x^2`, for `a = |phi| < 2 pi`: (..., 3, 3)."""
    phi = np.asarray(rotation_vectors, np.float64)
    angle = np.linalg.norm(phi, axis=-1)[..., None, None]
    small = angle < _SMALL_ANGLE_RAD
    a = np.where(small, 1.0, angle)
    a2 = angle**2
    second = np.where(small, 1 / 12 + a2 / 720 + a2**2 / 30240, 1 / a**2 - 1 / (2 * a * np.tan(a / 2)))
    cross = hat(phi)
    return np.eye(3) - cross / 2 + second * (cross @ cross)
