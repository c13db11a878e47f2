"""Compiled warps of events by a velocity, and their derivatives: one loop over the events each, in float32.

All warps move a point `p = (x, y, 1)` of the normalised plane to `q(w)`, which depends on the time `a = t_ref - t` and
the three parameters `w`, and divide by the third coordinate: `u = q1 / q3`, `v = q2 / q3`. A grid maps these to bins:
row `v scale_y + offset_y`, column `u scale_x + offset_x`. `grid` is (scale_x, offset_x, scale_y, offset_y).

    du/dw_b       = (dq1/dw_b - u dq3/dw_b) / q3
    d2u/dw_b dw_c = (d2q1 - u d2q3 - du/dw_b dq3/dw_c - dq3/dw_b du/dw_c) / q3
"""

# mypy: ignore-errors

from typing import Any

import numpy as np

from cmaxslam_fbp.compiling import REASSOCIATED, compiled

ROTATION, EXACT_ROTATION, TRANSLATION = range(3)


# The points themselves are computed one rounded operation after the other, as `tensor_warps` does it: an event on the
# edge of two bins falls to the same one on every device.

_BLOCK = 512  # events that are summed in float32
_ZERO, _ONE, _HALF = np.float32(0), np.float32(1), np.float32(0.5)
# Series of sin(z)/z, (1 - cos z)/z^2 and (z - sin z)/z^3 in z^2: exact in float32 up to z = pi.
_S = tuple(np.float32(c) for c in (1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800))
_C = tuple(np.float32(c) for c in (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600, 1 / 87178291200))
_D = tuple(np.float32(c) for c in (1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800))


@compiled
def _series(z2, c):
    value = c[len(c) - 1]
    for k in range(len(c) - 2, -1, -1):
        value = value * z2 + c[k]
    return value


@compiled
def _cross(a1, a2, a3, b1, b2, b3):
    return a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1


@compiled
def _transform(model, x, y, a, w):
    """`q(w)`: `p + a w x p` (rotation to first order), `exp(a [w]x) p` (exact), `p + a w` (translation)."""
    if model == TRANSLATION:
        return x + a * w[0], y + a * w[1], _ONE + a * w[2]
    c1, c2, c3 = _cross(w[0], w[1], w[2], x, y, _ONE)
    if model == ROTATION:
        return x + a * c1, y + a * c2, _ONE + a * c3
    z2 = a * a * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    s, c = a * _series(z2, _S), a * a * _series(z2, _C)
    d1, d2, d3 = _cross(w[0], w[1], w[2], c1, c2, c3)
    return x + s * c1 + c * d1, y + s * c2 + c * d2, _ONE + s * c3 + c * d3


@compiled(fastmath=REASSOCIATED)
def _derivative(model, x, y, a, w, q, b):
    """`dq/dw_b`: `a e_b x p`; `a (J_l(a w) e_b) x q` with the left Jacobian of SO(3); `a e_b`."""
    e1 = _ONE if b == 0 else _ZERO
    e2 = _ONE if b == 1 else _ZERO
    e3 = _ONE if b == 2 else _ZERO
    if model == TRANSLATION:
        return a * e1, a * e2, a * e3
    if model == ROTATION:
        d1, d2, d3 = _cross(e1, e2, e3, x, y, _ONE)
        return a * d1, a * d2, a * d3
    z2 = a * a * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    c, d = a * _series(z2, _C), a * a * _series(z2, _D)
    f1, f2, f3 = _cross(w[0], w[1], w[2], e1, e2, e3)
    g1, g2, g3 = _cross(w[0], w[1], w[2], f1, f2, f3)
    m1, m2, m3 = e1 + c * f1 + d * g1, e2 + c * f2 + d * g2, e3 + c * f3 + d * g3
    d1, d2, d3 = _cross(m1, m2, m3, q[0], q[1], q[2])
    return a * d1, a * d2, a * d3


@compiled(fastmath=REASSOCIATED)
def _second_derivative(model, a, q, b, c):
    """`d2q/dw_b dw_c`: zero but for the exact rotation, where it is `a^2/2 (e_b x (e_c x q) + e_c x (e_b x q))`.

    That is its leading term in `a w`; those of higher order are left out.
    """
    if model != EXACT_ROTATION:
        return _ZERO, _ZERO, _ZERO
    # e_b x (e_c x q) = e_c q_b - q (e_b . e_c)
    k = a * a * _HALF
    same = _ONE if b == c else _ZERO
    out1 = (q[b] if c == 0 else _ZERO) + (q[c] if b == 0 else _ZERO) - _ONE * (same + same) * q[0]
    out2 = (q[b] if c == 1 else _ZERO) + (q[c] if b == 1 else _ZERO) - _ONE * (same + same) * q[1]
    out3 = (q[b] if c == 2 else _ZERO) + (q[c] if b == 2 else _ZERO) - _ONE * (same + same) * q[2]
    return k * out1, k * out2, k * out3


@compiled(fastmath=REASSOCIATED)
def _image_derivative(model, x, y, a, w, q, inverse, u, v, b):
    """`(du/dw_b, dv/dw_b, dq3/dw_b)`."""
    d1, d2, d3 = _derivative(model, x, y, a, w, q, b)
    return (d1 - u * d3) * inverse, (d2 - v * d3) * inverse, d3


# The loops below vectorise because their arrays are flat (a row of a 2-D array has a length that the compiler does not
# know), start at zero (so no index can be negative), and sum in float32 over a block of events, in float64 over blocks.


def make_warp(MODEL: int) -> Any:
    """Write the bin coordinates, row before column, of all events: `points` is (2 N,)."""

    @compiled
    def warp(x, y, a, w0, w1, w2, grid, points):
        w = (w0, w1, w2)
        scale_x, offset_x, scale_y, offset_y = grid[0], grid[1], grid[2], grid[3]
        for i in range(len(x)):
            q1, q2, q3 = _transform(MODEL, x[i], y[i], a[i], w)
            inverse = _ONE / q3
            points[2 * i] = q2 * inverse * scale_y + offset_y
            points[2 * i + 1] = q1 * inverse * scale_x + offset_x

    return warp


def make_pullback(MODEL: int) -> Any:
    """Write `sum_i (dpoint_i/dw)^T points_bar_i`, the gradient for the parameters; `points_bar` is (2 N,)."""

    @compiled(fastmath=REASSOCIATED)
    def pullback(x, y, a, w0, w1, w2, grid, points_bar, gradient):
        w = (w0, w1, w2)
        scale_x, scale_y = grid[0], grid[2]
        gradient[:] = 0.0
        for first in range(0, len(x), _BLOCK):
            last = min(first + _BLOCK, len(x))
            xs, ys, times, bars = x[first:last], y[first:last], a[first:last], points_bar[2 * first : 2 * last]
            g0 = g1 = g2 = _ZERO
            for i in range(len(xs)):
                q = _transform(MODEL, xs[i], ys[i], times[i], w)
                inverse = _ONE / q[2]
                u, v = q[0] * inverse, q[1] * inverse
                bar_v, bar_u = bars[2 * i] * scale_y, bars[2 * i + 1] * scale_x
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 0)
                g0 += bar_u * du + bar_v * dv
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 1)
                g1 += bar_u * du + bar_v * dv
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 2)
                g2 += bar_u * du + bar_v * dv
            gradient[0] += g0
            gradient[1] += g1
            gradient[2] += g2

    return pullback


def make_tangent(MODEL: int) -> Any:
    """Write the derivative of the points with respect to one of the parameters: `points_dot` is (2 N,)."""

    @compiled(fastmath=REASSOCIATED)
    def tangent(x, y, a, w0, w1, w2, axis, grid, points_dot):
        w = (w0, w1, w2)
        scale_x, scale_y = grid[0], grid[2]
        for i in range(len(x)):
            q = _transform(MODEL, x[i], y[i], a[i], w)
            inverse = _ONE / q[2]
            u, v = q[0] * inverse, q[1] * inverse
            du, dv, _ = _image_derivative(MODEL, x[i], y[i], a[i], w, q, inverse, u, v, axis)
            points_dot[2 * i] = scale_y * dv
            points_dot[2 * i + 1] = scale_x * du

    return tangent


@compiled(fastmath=REASSOCIATED)
def _curvature(model, x, y, a, w, q, inverse, u, v, bar_u, bar_v, rows, mixed, columns, b, c):
    """Return what one event adds to entry (b, c) of the Hessian."""
    ub, vb, q3b = _image_derivative(model, x, y, a, w, q, inverse, u, v, b)
    uc, vc, q3c = _image_derivative(model, x, y, a, w, q, inverse, u, v, c)
    s1, s2, s3 = _second_derivative(model, a, q, b, c)
    ubc = (s1 - u * s3 - ub * q3c - q3b * uc) * inverse
    vbc = (s2 - v * s3 - vb * q3c - q3b * vc) * inverse
    return rows * vb * vc + mixed * (vb * uc + ub * vc) + columns * ub * uc + bar_u * ubc + bar_v * vbc


def make_pullback_curvature(MODEL: int) -> Any:
    """Write `sum_i (dpoint/dw)^T C_i (dpoint/dw) + points_bar_i . d2point/dw2` to `hessian` (3, 3).

    `curvatures` (3 N,) holds the symmetric `C_i`: row-row, row-column, column-column; `points_bar` is (2 N,).
    """

    @compiled(fastmath=REASSOCIATED)
    def pullback_curvature(x, y, a, w0, w1, w2, grid, points_bar, curvatures, hessian):
        w = (w0, w1, w2)
        scale_x, scale_y = grid[0], grid[2]
        hessian[:] = 0.0
        for first in range(0, len(x), _BLOCK):
            last = min(first + _BLOCK, len(x))
            xs, ys, times, bars = x[first:last], y[first:last], a[first:last], points_bar[2 * first : 2 * last]
            bends = curvatures[3 * first : 3 * last]
            h00 = h01 = h02 = h11 = h12 = h22 = _ZERO
            for i in range(len(xs)):
                q = _transform(MODEL, xs[i], ys[i], times[i], w)
                inverse = _ONE / q[2]
                u, v = q[0] * inverse, q[1] * inverse
                bv, bu = bars[2 * i] * scale_y, bars[2 * i + 1] * scale_x
                vv = bends[3 * i] * scale_y * scale_y
                uv = bends[3 * i + 1] * scale_y * scale_x
                uu = bends[3 * i + 2] * scale_x * scale_x
                h00 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 0, 0)
                h01 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 0, 1)
                h02 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 0, 2)
                h11 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 1, 1)
                h12 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 1, 2)
                h22 += _curvature(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, bu, bv, vv, uv, uu, 2, 2)
            hessian[0, 0] += h00
            hessian[0, 1] += h01
            hessian[0, 2] += h02
            hessian[1, 1] += h11
            hessian[1, 2] += h12
            hessian[2, 2] += h22
        hessian[1, 0], hessian[2, 0], hessian[2, 1] = hessian[0, 1], hessian[0, 2], hessian[1, 2]

    return pullback_curvature


def make_pullback_outer(MODEL: int) -> Any:
    """Write `sum_i g_i g_i^T` with every event's part `g_i = (dpoint_i/dw)^T points_bar_i` of the gradient, (3, 3)."""

    @compiled(fastmath=REASSOCIATED)
    def pullback_outer(x, y, a, w0, w1, w2, grid, points_bar, outer):
        w = (w0, w1, w2)
        scale_x, scale_y = grid[0], grid[2]
        outer[:] = 0.0
        for first in range(0, len(x), _BLOCK):
            last = min(first + _BLOCK, len(x))
            xs, ys, times, bars = x[first:last], y[first:last], a[first:last], points_bar[2 * first : 2 * last]
            h00 = h01 = h02 = h11 = h12 = h22 = _ZERO
            for i in range(len(xs)):
                q = _transform(MODEL, xs[i], ys[i], times[i], w)
                inverse = _ONE / q[2]
                u, v = q[0] * inverse, q[1] * inverse
                bv, bu = bars[2 * i] * scale_y, bars[2 * i + 1] * scale_x
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 0)
                g0 = bu * du + bv * dv
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 1)
                g1 = bu * du + bv * dv
                du, dv, _ = _image_derivative(MODEL, xs[i], ys[i], times[i], w, q, inverse, u, v, 2)
                g2 = bu * du + bv * dv
                h00 += g0 * g0
                h01 += g0 * g1
                h02 += g0 * g2
                h11 += g1 * g1
                h12 += g1 * g2
                h22 += g2 * g2
            outer[0, 0] += h00
            outer[0, 1] += h01
            outer[0, 2] += h02
            outer[1, 1] += h11
            outer[1, 2] += h12
            outer[2, 2] += h22
        outer[1, 0], outer[2, 0], outer[2, 1] = outer[0, 1], outer[0, 2], outer[1, 2]

    return pullback_outer
