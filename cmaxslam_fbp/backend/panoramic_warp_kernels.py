"""Compiled panoramic warp of the events of a window, and its derivatives: one vectorised loop per slot of time.

The events are ordered by time and divided into slots; `first` (S + 1,) tells where each begins. The rotation is given
at the S + 1 edges of the slots and taken linearly between them: `P = ((1 - s) R_m + s R_{m+1}) b`, with the event's
place `s` in its slot. A slot is so short that the chord and the arc differ by less than a thousandth of a pixel.
"""

# mypy: ignore-errors

import math

import numpy as np

from cmaxslam_fbp.compiling import REASSOCIATED, compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import (
    MIN_SQUARE,
    direction_gradient,
    project_fast,
    rotation_gradient,
)

_ZERO, _ONE = np.float32(0), np.float32(1)


@compiled
def look_up(x, y, table, out):
    """Write the bearings (3, N) of events at pixels `x`, `y` (N,) from the table (height, width, 3)."""
    for i in range(len(x)):
        row, column = y[i], x[i]
        out[0, i] = table[row, column, 0]
        out[1, i] = table[row, column, 1]
        out[2, i] = table[row, column, 2]


@compiled(fastmath=REASSOCIATED)
def _turn(R, D, s, x, y, z):
    """`(R + s D) b` for matrices given as nine numbers."""
    return (
        R[0] * x + R[1] * y + R[2] * z + s * (D[0] * x + D[1] * y + D[2] * z),
        R[3] * x + R[4] * y + R[5] * z + s * (D[3] * x + D[4] * y + D[5] * z),
        R[6] * x + R[7] * y + R[8] * z + s * (D[6] * x + D[7] * y + D[8] * z),
    )


@compiled(fastmath=REASSOCIATED)
def _slot(rotations, m):
    """Return `R_m` and `R_{m+1} - R_m`, nine numbers each."""
    a, b = rotations[m], rotations[m + 1]
    return (
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]),
        (
            b[0] - a[0], b[1] - a[1], b[2] - a[2],
            b[3] - a[3], b[4] - a[4], b[5] - a[5],
            b[6] - a[6], b[7] - a[7], b[8] - a[8],
        ),
    )  # fmt: skip


@compiled(fastmath=REASSOCIATED)
def add_to_edges(gradient, m, whole, later):
    """Add a slot's sums of three numbers to its edges; `later` are weighted by the events' places."""
    for e in range(3):
        gradient[m, e] += whole[e] - later[e]
        gradient[m + 1, e] += later[e]


@compiled(fastmath=REASSOCIATED)
def warp(first, place, bearings, rotations, width, height, focal, top, left, padding, points):
    """Write row and column, counted from `top` and `left`, of every event: `points` is (2 N,).

    `bearings` is (3, N), `rotations` (S + 1, 9), all float32. Columns are brought into `[0, width)` from `left` on, and
    `padding` is added to them.
    """
    for m in range(len(first) - 1):
        a, b = first[m], first[m + 1]
        R, D = _slot(rotations, m)
        s, x, y, z = place[a:b], bearings[0, a:b], bearings[1, a:b], bearings[2, a:b]
        out = points[2 * a : 2 * b]
        for i in range(len(s)):
            p1, p2, p3 = _turn(R, D, s[i], x[i], y[i], z[i])
            u, v = project_fast(p1, p2, p3, width, height, focal)
            column = u - left
            column = column + width if column < _ZERO else column
            out[2 * i] = v - top
            out[2 * i + 1] = column + padding


@compiled(fastmath=REASSOCIATED)
def pullback(first, place, bearings, rotations, focal, points_bar, gradient):
    """Write the gradient (S + 1, 3) for left turns `exp(phi_m) R_m` of the edges; `points_bar` is (2 N,)."""
    gradient[:] = 0.0
    for m in range(len(first) - 1):
        a, b = first[m], first[m + 1]
        R, D = _slot(rotations, m)
        s, x, y, z = place[a:b], bearings[0, a:b], bearings[1, a:b], bearings[2, a:b]
        bars = points_bar[2 * a : 2 * b]
        g1 = g2 = g3 = h1 = h2 = h3 = _ZERO
        for i in range(len(s)):
            p1, p2, p3 = _turn(R, D, s[i], x[i], y[i], z[i])
            r1, r2, r3 = rotation_gradient(p1, p2, p3, focal, bars[2 * i + 1], bars[2 * i])
            g1 += r1
            g2 += r2
            g3 += r3
            h1 += s[i] * r1
            h2 += s[i] * r2
            h3 += s[i] * r3
        add_to_edges(gradient, m, (g1, g2, g3), (h1, h2, h3))


@compiled(fastmath=REASSOCIATED)
def pullback_curvature(first, place, bearings, rotations, focal, curvatures, entries):
    """Write `sum_i A_i^T C_i A_i` (S + 1, 6), `A_i = d(row, column)/d phi`, lumped at the edges of the slots.

    `curvatures` (3 N,) holds the symmetric `C_i`: row-row, row-column, column-column. The six numbers are the entries
    11, 12, 13, 22, 23, 33.
    """
    entries[:] = 0.0
    for m in range(len(first) - 1):
        a, b = first[m], first[m + 1]
        R, D = _slot(rotations, m)
        s, x, y, z = place[a:b], bearings[0, a:b], bearings[1, a:b], bearings[2, a:b]
        C = curvatures[3 * a : 3 * b]
        k11 = k12 = k13 = k22 = k23 = k33 = _ZERO
        middle = _ZERO
        for i in range(len(s)):
            p1, p2, p3 = _turn(R, D, s[i], x[i], y[i], z[i])
            square = p1 * p1 + p3 * p3
            least = MIN_SQUARE * (square + p2 * p2)
            bounded = square if square > least else least
            rho = _ONE / math.sqrt(bounded)
            # d column / d phi = f (-X Y / rho^2, 1, -Y Z / rho^2), d row / d phi = f (-Z / rho, 0, X / rho)
            c1, c3 = -p1 * p2 * rho * rho, -p2 * p3 * rho * rho
            r1, r3 = -p3 * rho, p1 * rho
            rr, rc, cc = C[3 * i], C[3 * i + 1], C[3 * i + 2]
            k11 += rr * r1 * r1 + (rc + rc) * r1 * c1 + cc * c1 * c1
            k12 += rc * r1 + cc * c1
            k13 += rr * r1 * r3 + rc * (r1 * c3 + r3 * c1) + cc * c1 * c3
            k22 += cc
            k23 += rc * r3 + cc * c3
            k33 += rr * r3 * r3 + (rc + rc) * r3 * c3 + cc * c3 * c3
            middle += s[i]
        share = middle / max(b - a, 1)
        square_focal = focal * focal
        part = (k11, k12, k13, k22, k23, k33)
        for e in range(6):
            entries[m, e] += (_ONE - share) * square_focal * part[e]
            entries[m + 1, e] += share * square_focal * part[e]


@compiled(fastmath=REASSOCIATED)
def pullback_to_pixels(first, place, x, y, bearings, rotations, focal, points_bar, table):
    """Add to the table (height, width, 3) the gradient by the direction `b` that each pixel sees.

    `p = pi(R b)`, so it is `R^T (d pi / dX)^T` of the event's cotangent. The arguments are those of
    `pullback`, `x` and `y` (N,) the events' pixels, and the table is float64.
    """
    for m in range(len(first) - 1):
        A, B = rotations[m], rotations[m + 1]
        for i in range(first[m], first[m + 1]):
            s, b1, b2, b3 = place[i], bearings[0, i], bearings[1, i], bearings[2, i]
            r = _ONE - s
            r11, r12, r13 = r * A[0] + s * B[0], r * A[1] + s * B[1], r * A[2] + s * B[2]
            r21, r22, r23 = r * A[3] + s * B[3], r * A[4] + s * B[4], r * A[5] + s * B[5]
            r31, r32, r33 = r * A[6] + s * B[6], r * A[7] + s * B[7], r * A[8] + s * B[8]
            X = r11 * b1 + r12 * b2 + r13 * b3
            Y = r21 * b1 + r22 * b2 + r23 * b3
            Z = r31 * b1 + r32 * b2 + r33 * b3
            g1, g2, g3 = direction_gradient(X, Y, Z, focal, points_bar[2 * i + 1], points_bar[2 * i])
            pixel = table[y[i], x[i]]
            pixel[0] += r11 * g1 + r21 * g2 + r31 * g3
            pixel[1] += r12 * g1 + r22 * g2 + r32 * g3
            pixel[2] += r13 * g1 + r23 * g2 + r33 * g3
