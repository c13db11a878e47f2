"""Lens models: from directions to points of the image plane in units of the focal length, and back.

Each model has `project(rays (N, 3), c) -> points (N, 2)` and its inverse `unproject(points, c) -> rays`, in which a
point at which nothing is seen, beyond the range where the model can be inverted, is NaN. `c` are the coefficients,
`coefficients` their names, `magnification(c)` is what the model adds to the focal length near the axis. `is_wide` marks
those for lenses that may not see on the whole sensor. Numbers that run away in an iteration, or where the model has no
answer, are sorted out in the end: callers silence NumPy's warnings.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from cmaxslam_fbp.arrays import FloatArray

Coefficients = tuple[float, ...]

_ITERATIONS = 60
_CONVERGED = 1e-12


class Lens(Protocol):
    """A lens model."""

    coefficients: ClassVar[tuple[str, ...]]
    is_wide: ClassVar[bool]

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """Return the points (N, 2) at which directions (N, 3) are seen."""

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """Return the directions (N, 3), of any length, that are seen at points (N, 2)."""

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """Return the ratio of points to the tangents of angles, near the axis."""


class Rational:
    """Brown-Conrady with a quotient of polynomials (OpenCV).

    `x' = x (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6) + 2 p1 x y + p2 (r^2 + 2 x^2)`, and
    `y'` alike with `p1 (r^2 + 2 y^2) + 2 p2 x y`.
    """

    coefficients: ClassVar[tuple[str, ...]] = ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")
    is_wide: ClassVar[bool] = False

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        return _distort(rays[:, :2] / rays[:, 2:], c)[0]

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        return np.column_stack([_undistort(points, c), np.ones(len(points))])

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return 1.0


class PlumbBob(Rational):
    """Brown-Conrady: the rational model without a denominator."""

    coefficients: ClassVar[tuple[str, ...]] = ("k1", "k2", "p1", "p2", "k3")


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


class Equidistant:
    """Kannala-Brandt: `r' = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)`, the angle off the axis."""

    coefficients: ClassVar[tuple[str, ...]] = ("k1", "k2", "k3", "k4")
    is_wide: ClassVar[bool] = True

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        radius = np.hypot(rays[:, 0], rays[:, 1])
        theta = np.arctan2(radius, rays[:, 2])
        return _along(rays[:, :2], radius, Equidistant._polynomial(c)(theta), 1 / rays[:, 2])

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        polynomial = Equidistant._polynomial(c)
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

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return 1.0

    @staticmethod
    def _polynomial(c: Coefficients) -> np.polynomial.Polynomial:
        k1, k2, k3, k4 = c
        return np.polynomial.Polynomial([0, 1, 0, k1, 0, k2, 0, k3, 0, k4])


def _along(vectors: FloatArray, radius: FloatArray, length: FloatArray, ratio_at_zero: FloatArray) -> FloatArray:
    """Return vectors (N, 2) of a radius (N,) with another length (N,), whose ratio is known where both are zero."""
    scale = np.where(radius > 1e-12, length / np.where(radius > 1e-12, radius, 1), ratio_at_zero)
    return np.asarray(vectors * scale[:, None])


class FieldOfView:
    """Devernay-Faugeras: `r' = atan(2 r tan(w / 2)) / w` (Kalibr's fov)."""

    coefficients: ClassVar[tuple[str, ...]] = ("w",)
    is_wide: ClassVar[bool] = True

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        if not c[0]:
            return rays[:, :2] / rays[:, 2:]
        radius = np.hypot(rays[:, 0], rays[:, 1])
        bent = np.arctan2(2 * np.tan(c[0] / 2) * radius, rays[:, 2]) / c[0]
        return _along(rays[:, :2], radius, bent, FieldOfView.magnification(c) / rays[:, 2])

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        radius = np.hypot(*points.T)
        if not c[0]:
            return np.column_stack([points, np.ones(len(points))])
        angle = np.where(np.abs(radius * c[0]) < np.pi / 2, radius * c[0], np.nan)
        tangent = np.tan(angle) / (2 * np.tan(c[0] / 2))
        return np.column_stack(
            [_along(points, radius, tangent, np.full(len(points), 1 / FieldOfView.magnification(c))), angle * 0 + 1]
        )

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return float(2 * np.tan(c[0] / 2) / c[0]) if c[0] else 1.0


class Omnidirectional:
    """Mei: `(x, y) / (z + xi |P|)`, then Brown-Conrady without `k3` (Kalibr's omni)."""

    coefficients: ClassVar[tuple[str, ...]] = ("xi", "k1", "k2", "p1", "p2")
    is_wide: ClassVar[bool] = True

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        depth = rays[:, 2] + c[0] * np.linalg.norm(rays, axis=1)
        return _distort(rays[:, :2] / depth[:, None], c[1:])[0]

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        xi = c[0]
        points = _undistort(points, c[1:])
        r2 = (points**2).sum(axis=1)
        factor = (xi + np.sqrt(1 + (1 - xi * xi) * r2)) / (1 + r2)
        return np.column_stack([factor[:, None] * points, factor - xi])

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return 1 / (1 + c[0]) if c[0] != -1 else np.inf


class ExtendedUnified:
    """EUCM: `(x, y) / (alpha d + (1 - alpha) z)` with `d^2 = beta (x^2 + y^2) + z^2`."""

    coefficients: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    is_wide: ClassVar[bool] = True

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        alpha, beta = c
        d = np.sqrt(beta * (rays[:, 0] ** 2 + rays[:, 1] ** 2) + rays[:, 2] ** 2)
        return np.asarray(rays[:, :2] / (alpha * d + (1 - alpha) * rays[:, 2])[:, None])

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        alpha, beta = c
        r2 = (points**2).sum(axis=1)
        z = (1 - beta * alpha**2 * r2) / (alpha * np.sqrt(1 - (2 * alpha - 1) * beta * r2) + 1 - alpha)
        return np.column_stack([points, z])

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return 1.0


class DoubleSphere:
    """Usenko: `(x, y) / (alpha d2 + (1 - alpha) (xi d1 + z))`, `d1 = |P|`, `d2^2 = x^2 + y^2 + (xi d1 + z)^2`."""

    coefficients: ClassVar[tuple[str, ...]] = ("xi", "alpha")
    is_wide: ClassVar[bool] = True

    @staticmethod
    def project(rays: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        xi, alpha = c
        shifted = xi * np.linalg.norm(rays, axis=1) + rays[:, 2]
        d2 = np.sqrt(rays[:, 0] ** 2 + rays[:, 1] ** 2 + shifted**2)
        return np.asarray(rays[:, :2] / (alpha * d2 + (1 - alpha) * shifted)[:, None])

    @staticmethod
    def unproject(points: FloatArray, c: Coefficients) -> FloatArray:
        """See the class."""
        xi, alpha = c
        r2 = (points**2).sum(axis=1)
        m = (1 - alpha**2 * r2) / (alpha * np.sqrt(1 - (2 * alpha - 1) * r2) + 1 - alpha)
        k = (m * xi + np.sqrt(m * m + (1 - xi * xi) * r2)) / (m * m + r2)
        return np.column_stack([k[:, None] * points, k * m - xi])

    @staticmethod
    def magnification(c: Coefficients) -> float:
        """See the class."""
        return 1 / (1 + c[0]) if c[0] != -1 else np.inf


LENSES: dict[str, Lens] = {
    "plumb_bob": PlumbBob(),
    "rational_polynomial": Rational(),
    "equidistant": Equidistant(),
    "fov": FieldOfView(),
    "omni": Omnidirectional(),
    "eucm": ExtendedUnified(),
    "ds": DoubleSphere(),
}
