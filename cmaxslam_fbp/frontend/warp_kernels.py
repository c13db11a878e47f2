"""Loops that move events by a motion model, with their derivatives: in float32, for any number of parameters.

A model moves a point `p = (x, y, 1)` to `q(w)` over the time `dt = t_ref - t`; its image is `u = q1 / q3`,
`v = q2 / q3`. A grid maps it to bins: row `v scale_y + offset_y`, column `u scale_x + offset_x`. `grid` is (scale_x,
offset_x, scale_y, offset_y), `w` a tuple of P numbers.

A function of the points is differentiated through `q`. With its derivatives `f_u`, `f_v`, `f_uu`, `f_uv`, `f_vv`:

    df/dw_b       = qbar . dq/dw_b,    qbar = (f_u, f_v, -u f_u - v f_v) / q3
    d2f/dw_b dw_c = dq/dw_b . M dq/dw_c + qbar . d2q/dw_b dw_c,    M = d2f/dq2
    M_11 = f_uu / q3^2,  M_12 = f_uv / q3^2,  M_13 = -(u f_uu + v f_uv + f_u) / q3^2,  and so on

The functions are templates: `transform`, `derivative` and `second_derivative` are those of a model, `PARAMETERS` is
its P. The loops vectorise because their arrays are flat (a row of a 2-D array has a length that the compiler does not
know), start at zero (so no index can be negative), and sum in float32 over a block of events, in float64 over blocks.
"""

# mypy: ignore-errors
# ruff: noqa: F821

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from cmaxslam_fbp.compiling import REASSOCIATED, inlinable, specialised

_BLOCK = 512
_ZERO, _ONE = np.float32(0), np.float32(1)


def _points(x, y, dt, w, grid, points):
    """Write the bin coordinates, row before column, of all events: `points` is (2 N,)."""
    # One rounded operation after the other, as on tensors: an event on the edge of two bins falls to the same one.
    scale_x, offset_x, scale_y, offset_y = grid[0], grid[1], grid[2], grid[3]
    for i in range(len(x)):
        q = transform((x[i], y[i], _ONE), dt[i], w)
        inverse = _ONE / q[2]
        points[2 * i] = q[1] * inverse * scale_y + offset_y
        points[2 * i + 1] = q[0] * inverse * scale_x + offset_x


def _tangent(x, y, dt, w, axis, grid, points_dot):
    """Write the derivative of the points with respect to one of the parameters: `points_dot` is (2 N,)."""
    scale_x, scale_y = grid[0], grid[2]
    for i in range(len(x)):
        p = x[i], y[i], _ONE
        q = transform(p, dt[i], w)
        inverse = _ONE / q[2]
        d = derivative(p, dt[i], w, q, axis)
        points_dot[2 * i] = scale_y * (d[1] - q[1] * inverse * d[2]) * inverse
        points_dot[2 * i + 1] = scale_x * (d[0] - q[0] * inverse * d[2]) * inverse


def _adjoint(x, y, dt, w, grid, points_bar, q1, q2, q3, bar1, bar2, bar3):
    """Write `q` and `qbar` of a block of events."""
    scale_x, scale_y = grid[0], grid[2]
    for i in range(len(x)):
        q = transform((x[i], y[i], _ONE), dt[i], w)
        inverse = _ONE / q[2]
        f_u, f_v = points_bar[2 * i + 1] * scale_x, points_bar[2 * i] * scale_y
        q1[i], q2[i], q3[i] = q
        bar1[i], bar2[i] = f_u * inverse, f_v * inverse
        bar3[i] = -(q[0] * f_u + q[1] * f_v) * inverse * inverse


def _pullback(x, y, dt, w, grid, points_bar, gradient, outer):
    """Write `sum_i g_i` (P,), and `sum_i g_i g_i^T` to `outer` (P, P) unless that is empty.

    `g_i = (dpoint_i/dw)^T points_bar_i` is the part that an event has in the gradient for the parameters; `points_bar`
    is (2 N,).
    """
    q1, q2, q3, bar1, bar2, bar3 = _scratch(), _scratch(), _scratch(), _scratch(), _scratch(), _scratch()
    parts = np.empty(PARAMETERS * _BLOCK, np.float32)
    gradient[:] = 0.0
    outer[:] = 0.0
    for first in range(0, len(x), _BLOCK):
        last = min(first + _BLOCK, len(x))
        xs, ys, times, bars = x[first:last], y[first:last], dt[first:last], points_bar[2 * first : 2 * last]
        adjoint(xs, ys, times, w, grid, bars, q1, q2, q3, bar1, bar2, bar3)
        for b in range(PARAMETERS):
            part = parts[b * _BLOCK : (b + 1) * _BLOCK]
            total = _ZERO
            for i in range(len(xs)):
                d = derivative((xs[i], ys[i], _ONE), times[i], w, (q1[i], q2[i], q3[i]), b)
                part[i] = bar1[i] * d[0] + bar2[i] * d[1] + bar3[i] * d[2]
                total += part[i]
            gradient[b] += total
        for b in range(len(outer)):
            for c in range(b + 1):
                one, other = parts[b * _BLOCK : (b + 1) * _BLOCK], parts[c * _BLOCK : (c + 1) * _BLOCK]
                total = _ZERO
                for i in range(len(xs)):
                    total += one[i] * other[i]
                outer[b, c] += total
    for b in range(len(outer)):
        for c in range(b):
            outer[c, b] = outer[b, c]


def _curvature(x, y, dt, w, grid, points_bar, curvatures, hessian):
    """Write `sum_i (dpoint_i/dw)^T C_i (dpoint_i/dw) + points_bar_i . d2point_i/dw2` to `hessian` (P, P).

    `curvatures` (3 N,) holds the symmetric `C_i`: row-row, row-column, column-column; `points_bar` is (2 N,).
    """
    scale_x, scale_y = grid[0], grid[2]
    q1, q2, q3, bar1, bar2, bar3 = _scratch(), _scratch(), _scratch(), _scratch(), _scratch(), _scratch()
    m11, m12, m13, m22, m23, m33 = _scratch(), _scratch(), _scratch(), _scratch(), _scratch(), _scratch()
    derivatives = np.empty(3 * PARAMETERS * _BLOCK, np.float32)
    hessian[:] = 0.0
    for first in range(0, len(x), _BLOCK):
        last = min(first + _BLOCK, len(x))
        xs, ys, times, bars = x[first:last], y[first:last], dt[first:last], points_bar[2 * first : 2 * last]
        adjoint(xs, ys, times, w, grid, bars, q1, q2, q3, bar1, bar2, bar3)
        of_points = curvatures[3 * first : 3 * last]
        for i in range(len(xs)):
            inverse = _ONE / q3[i]
            u, v, to_row, to_column = q1[i] * inverse, q2[i] * inverse, scale_y * inverse, scale_x * inverse
            m22[i] = of_points[3 * i] * to_row * to_row
            m12[i] = of_points[3 * i + 1] * to_row * to_column
            m11[i] = of_points[3 * i + 2] * to_column * to_column
            along_u, along_v = m11[i] * u + m12[i] * v, m12[i] * u + m22[i] * v
            m13[i], m23[i] = -along_u - bar1[i] * inverse, -along_v - bar2[i] * inverse
            m33[i] = along_u * u + along_v * v - (bar3[i] + bar3[i]) * inverse
        for b in range(PARAMETERS):
            b1, b2, b3 = _three(derivatives, b)
            for i in range(len(xs)):
                b1[i], b2[i], b3[i] = derivative((xs[i], ys[i], _ONE), times[i], w, (q1[i], q2[i], q3[i]), b)
            for c in range(b + 1):
                c1, c2, c3 = _three(derivatives, c)
                total = _ZERO
                for i in range(len(xs)):
                    s = second_derivative((xs[i], ys[i], _ONE), times[i], w, (q1[i], q2[i], q3[i]), b, c)
                    total += (
                        b1[i] * (m11[i] * c1[i] + m12[i] * c2[i] + m13[i] * c3[i])
                        + b2[i] * (m12[i] * c1[i] + m22[i] * c2[i] + m23[i] * c3[i])
                        + b3[i] * (m13[i] * c1[i] + m23[i] * c2[i] + m33[i] * c3[i])
                        + (bar1[i] * s[0] + bar2[i] * s[1] + bar3[i] * s[2])
                    )
                hessian[b, c] += total
    for b in range(PARAMETERS):
        for c in range(b):
            hessian[c, b] = hessian[b, c]


@inlinable
def _scratch():
    return np.empty(_BLOCK, np.float32)


@inlinable
def _three(derivatives, b):
    """Return the three arrays of `dq/dw_b`."""
    own = derivatives[3 * b * _BLOCK : 3 * (b + 1) * _BLOCK]
    return own[:_BLOCK], own[_BLOCK : 2 * _BLOCK], own[2 * _BLOCK :]


class WarpLoops(NamedTuple):
    """The compiled loops of a motion model."""

    points: Callable
    tangent: Callable
    pullback: Callable
    curvature: Callable


@cache
def loops_of(model):
    """Return the loops of a motion model, a class; they are compiled at their first call, and kept on disk."""
    names = {
        "transform": inlinable(model.transform),
        "derivative": inlinable(model.derivative, fastmath=REASSOCIATED),
        "second_derivative": inlinable(model.second_derivative, fastmath=REASSOCIATED),
        "PARAMETERS": len(model.parameters),
    }
    variant = f"{model.__module__}.{model.__qualname__}"
    names["adjoint"] = specialised(_adjoint, variant, names, fastmath=REASSOCIATED)
    fast = (specialised(loop, variant, names, fastmath=REASSOCIATED) for loop in (_tangent, _pullback, _curvature))
    return WarpLoops(specialised(_points, variant, names), *fast)
