"""Motion models: where a velocity takes a point of the normalised plane."""

from __future__ import annotations

from math import factorial
from typing import Any, ClassVar, Literal

import numpy as np

from cmaxslam_fbp.compiling import inlinable

Vector = Any  # three numbers, or three tensors of one number per event

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


class MotionModel:
    """A point `p = (x, y, 1)` moves to `q(w)` over the time `dt = t_ref - t`; its image is `(q1 / q3, q2 / q3)`.

    A model is a class of its own that says how many parameters `w` there are, and gives `q` and its derivatives. These
    are plain functions of numbers. Compiled loops inline them, for one event at a time, in float32: constants are
    written as `np.float32` (`ONE`), functions that they call are decorated with `inlinable`. The same `transform`
    takes tensors of all events at once, and so does autograd: it has only `+`, `-` and `*`, and numbers stand to the
    right of what may be a tensor.

    Attributes
    ----------
    parameters : tuple of str
        A name with its unit for each parameter: the columns of `velocity.csv`.
    kind : "angular", "linear" or None
        What the parameters are, up to the sign: an angular velocity (3,) in rad/s, a linear one (3,) in m/s at a depth
        of one metre, or neither.
    """

    parameters: ClassVar[tuple[str, ...]]
    kind: ClassVar[Literal["angular", "linear"] | None] = None

    @property
    def parameter_count(self) -> int:
        """The number P of parameters."""
        return len(self.parameters)

    @staticmethod
    def transform(p: Vector, dt: Any, w: Any) -> Vector:
        """Return `q(w)`."""
        raise NotImplementedError

    @staticmethod
    def derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int) -> Vector:
        """Return `dq/dw_b`."""
        raise NotImplementedError

    @staticmethod
    def second_derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int, c: int) -> Vector:
        """Return `d2q/dw_b dw_c`: zero for a model that is linear in its parameters."""
        return ZERO, ZERO, ZERO


@inlinable
def cross(a: Vector, b: Vector) -> Vector:
    """`a x b`."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlinable
def moved(p: Vector, dt: Any, v: Vector) -> Vector:
    """`p + dt v`."""
    return p[0] + dt * v[0], p[1] + dt * v[1], p[2] + dt * v[2]


@inlinable
def scaled(dt: Any, v: Vector) -> Vector:
    """`dt v`."""
    return dt * v[0], dt * v[1], dt * v[2]


@inlinable
def axis(b: int) -> Vector:
    """`e_b`, the unit vector; zero where `b` is none of 0, 1 and 2."""
    return ONE if b == 0 else ZERO, ONE if b == 1 else ZERO, ONE if b == 2 else ZERO


class FirstOrderRotation(MotionModel):
    """`q = p + dt w x p`: rotation to first order, the paper's model."""

    parameters = "wx_rad_s", "wy_rad_s", "wz_rad_s"
    kind = "angular"

    @staticmethod
    def transform(p: Vector, dt: Any, w: Any) -> Vector:
        """`p + dt w x p`."""
        return moved(p, dt, cross(w, p))

    @staticmethod
    def derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int) -> Vector:
        """`dt e_b x p`."""
        return scaled(dt, cross(axis(b), p))


class PlaneTranslation(MotionModel):
    """`q = p + dt w`: a plane at unit depth that the camera looks at squarely."""

    parameters = "vx_m_s", "vy_m_s", "vz_m_s"
    kind = "linear"

    @staticmethod
    def transform(p: Vector, dt: Any, w: Any) -> Vector:
        """`p + dt w`."""
        return moved(p, dt, w)

    @staticmethod
    def derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int) -> Vector:
        """`dt e_b`."""
        return scaled(dt, axis(b))


# Series of sin(z)/z, (1 - cos z)/z^2 and (z - sin z)/z^3 in z^2: exact in float32 up to z = pi, and smooth at zero.
_S, _C, _D = (tuple(np.float32((-1) ** k / factorial(2 * k + n)) for k in range(7)) for n in (1, 2, 3))


@inlinable
def _series(z2: Any, c: tuple[np.float32, ...]) -> Any:
    # Without a loop, so that loops over events that inline it are still vectorised.
    return z2 * (z2 * (z2 * (z2 * (z2 * (z2 * c[6] + c[5]) + c[4]) + c[3]) + c[2]) + c[1]) + c[0]


@inlinable
def _squared_angle(dt: Any, w: Any) -> Any:
    return dt * dt * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])


class ExactRotation(MotionModel):
    """`q = exp(dt [w]x) p`."""

    parameters = FirstOrderRotation.parameters
    kind = "angular"

    @staticmethod
    def transform(p: Vector, dt: Any, w: Any) -> Vector:
        """`p + sin z / |w| w x p + (1 - cos z) / |w|^2 w x (w x p)` with the angle `z = dt |w|`."""
        z2 = _squared_angle(dt, w)
        turned = cross(w, p)
        return moved(moved(p, dt * _series(z2, _S), turned), dt * dt * _series(z2, _C), cross(w, turned))

    @staticmethod
    def derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int) -> Vector:
        """`dt (J e_b) x q` with the left Jacobian `J` of SO(3) at `dt w`."""
        z2 = _squared_angle(dt, w)
        e = axis(b)
        turned = cross(w, e)
        column = moved(moved(e, dt * _series(z2, _C), turned), dt * dt * _series(z2, _D), cross(w, turned))
        return scaled(dt, cross(column, q))

    @staticmethod
    def second_derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int, c: int) -> Vector:
        """`dt^2 / 2 (e_b x (e_c x q) + e_c x (e_b x q))`: the leading term in `dt w`; others are left out."""
        one, other = cross(axis(b), cross(axis(c), q)), cross(axis(c), cross(axis(b), q))
        return scaled(HALF * dt * dt, moved(one, ONE, other))
