"""Compiled loops over the pixels of the panorama."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import CONTRACTED, compiled

_ZERO = np.float32(0)
_YES, _NO = np.int32(1), np.int32(0)


@compiled(fastmath=CONTRACTED)
def count_visits(x, y, z, planes, visits):
    """Add one to every pixel whose direction lies on the positive side of four planes through the camera's centre.

    `x`, `y`, `z` (P,) float32 are the directions of the pixels, `planes` (4, 3) float32 the inward normals in the world
    frame, `visits` (P,) int32 the counts.
    """
    a0, a1, a2 = planes[0, 0], planes[0, 1], planes[0, 2]
    b0, b1, b2 = planes[1, 0], planes[1, 1], planes[1, 2]
    c0, c1, c2 = planes[2, 0], planes[2, 1], planes[2, 2]
    d0, d1, d2 = planes[3, 0], planes[3, 1], planes[3, 2]
    for i in range(len(visits)):
        least = a0 * x[i] + a1 * y[i] + a2 * z[i]
        side = b0 * x[i] + b1 * y[i] + b2 * z[i]
        least = side if side < least else least
        side = c0 * x[i] + c1 * y[i] + c2 * z[i]
        least = side if side < least else least
        side = d0 * x[i] + d1 * y[i] + d2 * z[i]
        least = side if side < least else least
        visits[i] += _YES if least > _ZERO else _NO


@compiled
def sum_moments(window, known, visits, moments):
    """Write count, sums, squares and product of `sqrt(window)` and `sqrt(known / visits)` to `moments` (6,).

    They run over the pixels of the flat images (P,) that have been visited.
    """
    n = 0
    a = b = aa = bb = ab = 0.0
    for i in range(len(window)):
        if visits[i] > 0:
            events, rate = float(window[i]), float(known[i]) / visits[i]
            p, q = np.sqrt(events), np.sqrt(rate)
            n += 1
            a += p
            b += q
            aa += events
            bb += rate
            ab += p * q
    moments[0], moments[1], moments[2], moments[3], moments[4], moments[5] = n, a, b, aa, bb, ab
