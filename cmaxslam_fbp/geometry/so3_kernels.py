"""Compiled scalar building blocks for rotations: quaternions, exponential, logarithm, Jacobians, safe at zero.

Rotations are unit quaternions, as tuples `(x, y, z, w)` in registers: their logarithm keeps all digits at zero and up
to half a turn. Nothing is reassociated (no `fastmath`): the same input gives the same bits.
"""

# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call, untyped-decorator"
from __future__ import annotations

import math

from cmaxslam_fbp.compiling import compiled

_TINY_SQUARE = 1e-30  # of an angle in radians: below it the limits at zero are exact to the last bit
_SMALL_SQUARE = 1e-12  # of an angle in radians: below it the next terms of the series do not count


@compiled
def load(quaternions, index):
    """Return row `index` of quaternions (K, 4) as a tuple."""
    return quaternions[index, 0], quaternions[index, 1], quaternions[index, 2], quaternions[index, 3]


@compiled
def multiply(p, q):
    """Return the product `p q`: first `q` turns, then `p`."""
    return (
        p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1],
        p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0],
        p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3],
        p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2],
    )


@compiled
def conjugate(q):
    """Return the inverse rotation."""
    return -q[0], -q[1], -q[2], q[3]


@compiled
def rotate(q, v):
    """Return the vector `R(q) v`, as `v + 2 w (u x v) + 2 u x (u x v)` with `q = (u, w)`."""
    a = 2.0 * (q[1] * v[2] - q[2] * v[1])
    b = 2.0 * (q[2] * v[0] - q[0] * v[2])
    c = 2.0 * (q[0] * v[1] - q[1] * v[0])
    return (
        v[0] + q[3] * a + (q[1] * c - q[2] * b),
        v[1] + q[3] * b + (q[2] * a - q[0] * c),
        v[2] + q[3] * c + (q[0] * b - q[1] * a),
    )


@compiled
def so3_exp(x, y, z):
    """Return the quaternion of a rotation vector in radians."""
    square = x * x + y * y + z * z
    if square < _TINY_SQUARE:
        return 0.5 * x, 0.5 * y, 0.5 * z, 1.0
    angle = math.sqrt(square)
    scale = math.sin(0.5 * angle) / angle
    return scale * x, scale * y, scale * z, math.cos(0.5 * angle)


@compiled
def so3_log(q):
    """Return the rotation vector, of length at most pi, of a quaternion of either sign and any length but zero."""
    sign = -1.0 if q[3] < 0.0 else 1.0
    square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
    if square < _TINY_SQUARE:
        scale = 2.0 / q[3]
    else:
        length = math.sqrt(square)
        scale = sign * 2.0 * math.atan2(length, sign * q[3]) / length
    return scale * q[0], scale * q[1], scale * q[2]


@compiled
def write_matrix(q, out):
    """Write the rotation matrix (3, 3) of a unit quaternion."""
    x, y, z, w = q
    out[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    out[0, 1] = 2.0 * (x * y - z * w)
    out[0, 2] = 2.0 * (x * z + y * w)
    out[1, 0] = 2.0 * (x * y + z * w)
    out[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    out[1, 2] = 2.0 * (y * z - x * w)
    out[2, 0] = 2.0 * (x * z - y * w)
    out[2, 1] = 2.0 * (y * z + x * w)
    out[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@compiled
def write_polynomial(x, y, z, c0, c1, c2, out):
    """Write `c0 I + c1 [v]x + c2 [v]x^2` (3, 3) for `v = (x, y, z)`."""
    out[0, 0] = c0 - c2 * (y * y + z * z)
    out[0, 1] = c2 * x * y - c1 * z
    out[0, 2] = c2 * x * z + c1 * y
    out[1, 0] = c2 * x * y + c1 * z
    out[1, 1] = c0 - c2 * (x * x + z * z)
    out[1, 2] = c2 * y * z - c1 * x
    out[2, 0] = c2 * x * z - c1 * y
    out[2, 1] = c2 * y * z + c1 * x
    out[2, 2] = c0 - c2 * (x * x + y * y)


@compiled
def write_left_jacobian_inverse(x, y, z, out):
    """Write `J_l(phi)^-1 = I - [phi]x / 2 + (1 - (a/2) cot(a/2))/a^2 [phi]x^2`, for `a = |phi| < 2 pi`."""
    square = x * x + y * y + z * z
    if square < _SMALL_SQUARE:
        write_polynomial(x, y, z, 1.0, -0.5, 1.0 / 12.0, out)
        return
    half = 0.5 * math.sqrt(square)
    write_polynomial(x, y, z, 1.0, -0.5, (1.0 - half * math.cos(half) / math.sin(half)) / square, out)


@compiled
def write_power_jacobian(x, y, z, power, out):
    """Write `N = b J_l(b phi) J_l(phi)^-1`: how `exp(phi)^b` turns on the left where `exp(phi)` does.

    Along the axis that is `b`; across it the complex number `(exp(i b a) - 1) / (exp(i a) - 1)`, so that with
    `s = sin(b a/2) / sin(a/2)`: `N = b I + s sin((b-1) a/2)/a [phi]x + (b - s cos((b-1) a/2))/a^2 [phi]x^2`.
    Regular for `a < 2 pi`.
    """
    square = x * x + y * y + z * z
    if square < _SMALL_SQUARE:
        rest = power * (1.0 - power)
        write_polynomial(x, y, z, power, -0.5 * rest, rest * (1.0 - 2.0 * power) / 12.0, out)
        return
    angle = math.sqrt(square)
    ratio = math.sin(0.5 * power * angle) / math.sin(0.5 * angle)
    lag = 0.5 * (power - 1.0) * angle
    write_polynomial(
        x, y, z, power, ratio * math.sin(lag) / angle, (power - ratio * math.cos(lag)) / square, out
    )  # fmt: skip
