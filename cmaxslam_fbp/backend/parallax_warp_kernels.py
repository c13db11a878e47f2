"""Compiled panoramic warp of events seen by a camera that turns and moves, and its pullback.

As in `panoramic_warp_kernels`, events are ordered by time and divided into slots, and rotation and position are given
at the slots' edges and taken linearly between them. With `d = R b`, the inverse distance `rho` of the scene as seen
from the map's centre in the event's direction, and `q = rho c.d`:

    X = d + rho (1 + q) c        the point on the ray that lies at the distance 1/rho from the centre, to second order
    p = pi(X)                    its place on the panorama
    w = a (1 - q + q^2 / 2)      its weight, a exp(-q) to second order, with a gain per slot: see `HandObjective`
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.backend.panoramic_warp_kernels import add_to_edges
from cmaxslam_fbp.compiling import REASSOCIATED, compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import direction_gradient, project_fast

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)


@compiled(fastmath=REASSOCIATED)
def _pose(poses, m, s, x, y, z):
    """Return `d = R b` and `c` at the place `s` of slot `m`; a pose is nine numbers of R and three of c."""
    r = _ONE - s
    a, b = poses[m], poses[m + 1]
    return (
        (r * a[0] + s * b[0]) * x + (r * a[1] + s * b[1]) * y + (r * a[2] + s * b[2]) * z,
        (r * a[3] + s * b[3]) * x + (r * a[4] + s * b[4]) * y + (r * a[5] + s * b[5]) * z,
        (r * a[6] + s * b[6]) * x + (r * a[7] + s * b[7]) * y + (r * a[8] + s * b[8]) * z,
        r * a[9] + s * b[9],
        r * a[10] + s * b[10],
        r * a[11] + s * b[11],
    )


@compiled(fastmath=REASSOCIATED)
def warp(
    first, place, bearings, cells, poses, inverse, gains, width, height, focal, top, left, padding, points, weights
):
    """Write row and column of every event, counted from `top` and `left`, and its weight.

    `bearings` is (3, N), `cells` (N,) the place of each event in the table `inverse` of inverse distances, `poses`
    (S + 1, 12), `gains` (S,), `points` (2 N,), `weights` (N,), all float32 but the cells.
    """
    for m in range(len(first) - 1):
        for i in range(first[m], first[m + 1]):
            d1, d2, d3, c1, c2, c3 = _pose(poses, m, place[i], bearings[0, i], bearings[1, i], bearings[2, i])
            rho = inverse[cells[i]]
            q = rho * (c1 * d1 + c2 * d2 + c3 * d3)
            reach = rho * (_ONE + q)
            u, v = project_fast(d1 + reach * c1, d2 + reach * c2, d3 + reach * c3, width, height, focal)
            column = u - left
            column = column + width if column < _ZERO else column
            points[2 * i] = v - top
            points[2 * i + 1] = column + padding
            weights[i] = gains[m] * (_ONE - q + _HALF * q * q)


@compiled(fastmath=REASSOCIATED)
def pullback(
    first, place, bearings, cells, poses, inverse, gains, focal, points_bar, weights_bar,
    by_turn, by_position, by_inverse, by_gain,
):  # fmt: skip
    """Write the gradients of the edges' left turns and positions (S + 1, 3), of the table, and of the gains (S,).

    `points_bar` is (2 N,), `weights_bar` (N,); `by_inverse` is like the table, in float64.
    """
    by_turn[:] = 0.0
    by_position[:] = 0.0
    by_inverse[:] = 0.0
    for m in range(len(first) - 1):
        g1 = g2 = g3 = h1 = h2 = h3 = _ZERO
        k1 = k2 = k3 = l1 = l2 = l3 = _ZERO
        gain = gains[m]
        total = _ZERO
        for i in range(first[m], first[m + 1]):
            s = place[i]
            d1, d2, d3, c1, c2, c3 = _pose(poses, m, s, bearings[0, i], bearings[1, i], bearings[2, i])
            rho = inverse[cells[i]]
            along = c1 * d1 + c2 * d2 + c3 * d3
            q = rho * along
            reach = rho * (_ONE + q)
            x, y, z = d1 + reach * c1, d2 + reach * c2, d3 + reach * c3
            x1, x2, x3 = direction_gradient(x, y, z, focal, points_bar[2 * i + 1], points_bar[2 * i])
            slide = c1 * x1 + c2 * x2 + c3 * x3
            # by q: of the weight, and of the reach rho (1 + q)
            by_q = gain * weights_bar[i] * (q - _ONE) + rho * slide
            total += weights_bar[i] * (_ONE - q + _HALF * q * q)
            share = by_q * rho
            e1, e2, e3 = x1 + share * c1, x2 + share * c2, x3 + share * c3
            t1, t2, t3 = d2 * e3 - d3 * e2, d3 * e1 - d1 * e3, d1 * e2 - d2 * e1
            p1, p2, p3 = reach * x1 + share * d1, reach * x2 + share * d2, reach * x3 + share * d3
            by_inverse[cells[i]] += (_ONE + q) * slide + by_q * along
            g1 += t1
            g2 += t2
            g3 += t3
            h1 += s * t1
            h2 += s * t2
            h3 += s * t3
            k1 += p1
            k2 += p2
            k3 += p3
            l1 += s * p1
            l2 += s * p2
            l3 += s * p3
        by_gain[m] = total
        add_to_edges(by_turn, m, (g1, g2, g3), (h1, h2, h3))
        add_to_edges(by_position, m, (k1, k2, k3), (l1, l2, l3))
