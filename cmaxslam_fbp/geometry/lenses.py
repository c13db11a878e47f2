"""Lens models: from directions to points of the image plane in units of the focal length, and back.

Numbers that run away in an iteration, or where a model has no answer, are sorted out in the end: callers silence
NumPy's warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cmaxslam_fbp.arrays import FloatArray

Coefficients = tuple[float, ...]

_ITERATIONS = 60
_CONVERGED = 1e-12


class Lens(NamedTuple):
    """A lens model.

    Attributes
    ----------
    coefficients : tuple of str
        The names of its coefficients `c`.
    project : (rays, c) -> points
        The points (N, 2) at which directions (N, 3) are seen.
    unproject : (points, c) -> rays
        The directions (N, 3), of any length, that are seen at points (N, 2); NaN where nothing is seen, beyond what the
        model can be inverted for.
    magnification : c -> float
        The ratio of points to the tangents of angles, near the axis.
    is_wide : bool
        Whether such a lens may not see on the whole sensor.
    """

    coefficients: tuple[str, ...]
    project: Callable[[FloatArray, Coefficients], FloatArray]
    unproject: Callable[[FloatArray, Coefficients], FloatArray]
    magnification: Callable[[Coefficients], float] = lambda c: 1.0
    is_wide: bool = True


def _project_rational(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Brown-Conrady with a quotient of polynomials (OpenCV); without a denominator where `k4` and on are left out.

    `x' = x (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6) + 2 p1 x y + p2 (r^2 + 2 x^2)`, and
    `y'` alike with `p1 (r^2 + 2 y^2) + 2 p2 x y`.
    """
    return _distort(rays[:, :2] / rays[:, 2:], c)[0]


def _unproject_rational(points: FloatArray, c: Coefficients) -> FloatArray:
    return np.column_stack([_undistort(points, c), np.ones(len(points))])


def _distort(points: FloatArray, c: Coefficients) -> tuple[FloatArray, FloatArray]:
    """Return points (N, 2) of the normalised plane with their distortion, and its Jacobian (N, 3): xx, xy = yx, yy."""
    k1, k2, p1, p2, k3, k4, k5, k6 = (*c, *(0.0,) * (8 - len(c)))
    x, y = points.T
    r2 = x * x + y * y
    upper, lower = 1 + r2 * (k1 + r2 * (k2 + r2 * k3)), 1 + r2 * (k4 + r2 * (k5 + r2 * k6))
    radial = upper / lower
    # The derivative by r^2.
    slope = ((k1 + r2 * (2 * k2 + r2 * 3 * k3)) - radial * (k4 + r2 * (2 * k5 + r2 * 3 * k6))) / lower
    out = np.column_stack(
        [
            x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x),
            y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y,
        ]
    )
    jacobian = np.column_stack(
        [
            radial + 2 * x * x * slope + 2 * p1 * y + 6 * p2 * x,
            2 * x * y * slope + 2 * p1 * x + 2 * p2 * y,
            radial + 2 * y * y * slope + 6 * p1 * y + 2 * p2 * x,
        ]
    )
    return out, jacobian


def _undistort(distorted: FloatArray, c: Coefficients) -> FloatArray:
    """Invert `_distort` by Newton's method; NaN beyond the circle where the radial part stops to grow."""
    if not any(c):
        return distorted.copy()
    points = distorted.copy()
    moving = np.arange(len(points))
    for _ in range(_ITERATIONS):
        at, wanted = points[moving], distorted[moving]
        there, J = _distort(at, c)
        (x, y), (a, b, d) = (there - wanted).T, J.T
        step = np.stack([d * x - b * y, a * y - b * x], axis=1)
        step /= (a * d - b * b)[:, None]
        # A step from near the fold leads anywhere: none goes further than a quarter of the way out.
        length = _norm(step)
        furthest = 0.25 * (1 + _norm(at))
        points[moving] = at - step * np.minimum(1, furthest / np.maximum(length, 1e-300))[:, None]
        moving = moving[length > _CONVERGED]
        if not len(moving):
            break
    there, J = _distort(points, c)
    right = (_norm(there - distorted) < 1e-9) & (J[:, 0] * J[:, 2] > J[:, 1] ** 2) & (J[:, 0] > 0)
    right &= _norm(points) < _radius_of_fold(c)
    points[~right] = np.nan
    return points


def _norm(points: FloatArray) -> FloatArray:
    """Return the lengths (N,) of vectors (N, 2), much faster than NumPy's `norm`."""
    return np.asarray(np.sqrt(points[:, 0] * points[:, 0] + points[:, 1] * points[:, 1]))


def _radius_of_fold(c: Coefficients) -> float:
    """Return the radius up to which `r radial(r^2)` grows; infinity where it always does."""
    k1, k2, _, _, k3, k4, k5, k6 = (*c, *(0.0,) * (8 - len(c)))
    upper, lower = np.polynomial.Polynomial([1, k1, k2, k3]), np.polynomial.Polynomial([1, k4, k5, k6])
    s = np.polynomial.Polynomial([0, 1])  # r^2
    # d/dr (r U/L) = (U L + 2 s (U' L - U L')) / L^2; a zero of L is a pole.
    derivative = upper * lower + 2 * s * (upper.deriv() * lower - upper * lower.deriv())
    return float(np.sqrt(min(_first_root(derivative), _first_root(lower))))


def _first_root(polynomial: np.polynomial.Polynomial) -> float:
    """Return the smallest positive real root, or infinity."""
    trimmed = polynomial.trim(1e-300)
    roots = trimmed.roots() if trimmed.degree() > 0 else np.empty(0)
    real = np.real(roots[np.abs(np.imag(roots)) < 1e-9 * np.abs(roots)])
    return float(min(real[real > 0], default=np.inf))


def _project_equidistant(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Kannala-Brandt: `r' = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)`, the angle off the axis."""
    radius = np.hypot(rays[:, 0], rays[:, 1])
    theta = np.arctan2(radius, rays[:, 2])
    return _along(rays[:, :2], radius, _angle_polynomial(c)(theta), 1 / rays[:, 2])


def _unproject_equidistant(points: FloatArray, c: Coefficients) -> FloatArray:
    polynomial = _angle_polynomial(c)
    derivative = polynomial.deriv()
    fold = min(_first_root(derivative), np.pi)
    radius = np.hypot(*points.T)
    theta = np.minimum(radius, fold)
    for _ in range(_ITERATIONS):
        step = (polynomial(theta) - radius) / derivative(theta)
        theta = np.clip(theta - np.clip(step, -0.3, 0.3), 0, fold)
        if not (np.abs(step) > _CONVERGED).any():
            break
    theta[~(np.abs(polynomial(theta) - radius) < 1e-9) | (theta >= fold)] = np.nan
    return np.column_stack([_along(points, radius, np.sin(theta), np.ones(len(points))), np.cos(theta)])


def _angle_polynomial(c: Coefficients) -> np.polynomial.Polynomial:
    k1, k2, k3, k4 = c
    return np.polynomial.Polynomial([0, 1, 0, k1, 0, k2, 0, k3, 0, k4])


def _along(vectors: FloatArray, radius: FloatArray, length: FloatArray, ratio_at_zero: FloatArray) -> FloatArray:
    """Return vectors (N, 2) of a radius (N,) with another length (N,), whose ratio is known where both are zero."""
    scale = np.where(radius > 1e-12, length / np.where(radius > 1e-12, radius, 1), ratio_at_zero)
    return np.asarray(vectors * scale[:, None])


def _project_fov(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Devernay-Faugeras: `r' = atan(2 r tan(w / 2)) / w` (Kalibr's fov)."""
    if not c[0]:
        return rays[:, :2] / rays[:, 2:]
    radius = np.hypot(rays[:, 0], rays[:, 1])
    bent = np.arctan2(2 * np.tan(c[0] / 2) * radius, rays[:, 2]) / c[0]
    return _along(rays[:, :2], radius, bent, _fov_magnification(c) / rays[:, 2])


def _unproject_fov(points: FloatArray, c: Coefficients) -> FloatArray:
    radius = np.hypot(*points.T)
    if not c[0]:
        return np.column_stack([points, np.ones(len(points))])
    angle = np.where(np.abs(radius * c[0]) < np.pi / 2, radius * c[0], np.nan)
    tangent = np.tan(angle) / (2 * np.tan(c[0] / 2))
    return np.column_stack(
        [_along(points, radius, tangent, np.full(len(points), 1 / _fov_magnification(c))), angle * 0 + 1]
    )


def _fov_magnification(c: Coefficients) -> float:
    return float(2 * np.tan(c[0] / 2) / c[0]) if c[0] else 1.0


def _project_omni(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Mei: `(x, y) / (z + xi |P|)`, then Brown-Conrady without `k3` (Kalibr's omni)."""
    depth = rays[:, 2] + c[0] * np.linalg.norm(rays, axis=1)
    return _distort(rays[:, :2] / depth[:, None], c[1:])[0]


def _unproject_omni(points: FloatArray, c: Coefficients) -> FloatArray:
    xi = c[0]
    points = _undistort(points, c[1:])
    r2 = (points**2).sum(axis=1)
    factor = (xi + np.sqrt(1 + (1 - xi * xi) * r2)) / (1 + r2)
    return np.column_stack([factor[:, None] * points, factor - xi])


def _sphere_magnification(c: Coefficients) -> float:
    return 1 / (1 + c[0]) if c[0] != -1 else np.inf


def _project_eucm(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Extended unified: `(x, y) / (alpha d + (1 - alpha) z)` with `d^2 = beta (x^2 + y^2) + z^2`."""
    alpha, beta = c
    d = np.sqrt(beta * (rays[:, 0] ** 2 + rays[:, 1] ** 2) + rays[:, 2] ** 2)
    return np.asarray(rays[:, :2] / (alpha * d + (1 - alpha) * rays[:, 2])[:, None])


def _unproject_eucm(points: FloatArray, c: Coefficients) -> FloatArray:
    alpha, beta = c
    r2 = (points**2).sum(axis=1)
    z = (1 - beta * alpha**2 * r2) / (alpha * np.sqrt(1 - (2 * alpha - 1) * beta * r2) + 1 - alpha)
    return np.column_stack([points, z])


def _project_double_sphere(rays: FloatArray, c: Coefficients) -> FloatArray:
    """Usenko: `(x, y) / (alpha d2 + (1 - alpha) (xi d1 + z))`, `d1 = |P|`, `d2^2 = x^2 + y^2 + (xi d1 + z)^2`."""
    xi, alpha = c
    shifted = xi * np.linalg.norm(rays, axis=1) + rays[:, 2]
    d2 = np.sqrt(rays[:, 0] ** 2 + rays[:, 1] ** 2 + shifted**2)
    return np.asarray(rays[:, :2] / (alpha * d2 + (1 - alpha) * shifted)[:, None])


def _unproject_double_sphere(points: FloatArray, c: Coefficients) -> FloatArray:
    xi, alpha = c
    r2 = (points**2).sum(axis=1)
    m = (1 - alpha**2 * r2) / (alpha * np.sqrt(1 - (2 * alpha - 1) * r2) + 1 - alpha)
    k = (m * xi + np.sqrt(m * m + (1 - xi * xi) * r2)) / (m * m + r2)
    return np.column_stack([k[:, None] * points, k * m - xi])


_RADTAN = ("k1", "k2", "p1", "p2", "k3")

LENSES = {
    "plumb_bob": Lens(_RADTAN, _project_rational, _unproject_rational, is_wide=False),
    "rational_polynomial": Lens((*_RADTAN, "k4", "k5", "k6"), _project_rational, _unproject_rational, is_wide=False),
    "equidistant": Lens(("k1", "k2", "k3", "k4"), _project_equidistant, _unproject_equidistant),
    "fov": Lens(("w",), _project_fov, _unproject_fov, _fov_magnification),
    "omni": Lens(("xi", *_RADTAN[:4]), _project_omni, _unproject_omni, _sphere_magnification),
    "eucm": Lens(("alpha", "beta"), _project_eucm, _unproject_eucm),
    "ds": Lens(("xi", "alpha"), _project_double_sphere, _unproject_double_sphere, _sphere_magnification),
}
