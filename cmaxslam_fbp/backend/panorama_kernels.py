"""Compiled loops over the pixels of the panorama."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import CONTRACTED, compiled

_ZERO = np.float32(0)
MOST_VISITS = np.uint16(65_000)  # nearly an hour at the same place
_YES, _NO = np.uint16(1), np.uint16(0)


@compiled(fastmath=CONTRACTED)
def count_visits(longitudes, latitudes, planes, rows, columns, visits):
    """Add one to every pixel whose direction lies on the positive side of four planes through the camera's centre.

    `longitudes` (2, width) and `latitudes` (2, height) float32 are the sines and cosines of the columns and rows,
    `planes` (4, 3) float32 the inward normals in the world frame, `rows` and `columns` the first and the end of those
    to look at, `visits` (height, width) uint16 the counts, which end at `MOST_VISITS`.
    """
    sines, cosines = longitudes[0], longitudes[1]
    for row in range(rows[0], rows[1]):
        level, down = latitudes[1, row], latitudes[0, row]
        counts = visits[row]
        # Along a row, a side is `a sin + b + c cos` of the longitude.
        a0, a1, a2 = level * planes[0, 0], down * planes[0, 1], level * planes[0, 2]
        b0, b1, b2 = level * planes[1, 0], down * planes[1, 1], level * planes[1, 2]
        c0, c1, c2 = level * planes[2, 0], down * planes[2, 1], level * planes[2, 2]
        d0, d1, d2 = level * planes[3, 0], down * planes[3, 1], level * planes[3, 2]
        for i in range(columns[0], columns[1]):
            x, z = sines[i], cosines[i]
            least = a0 * x + a1 + a2 * z
            side = b0 * x + b1 + b2 * z
            least = side if side < least else least
            side = c0 * x + c1 + c2 * z
            least = side if side < least else least
            side = d0 * x + d1 + d2 * z
            least = side if side < least else least
            counts[i] += _YES if (least > _ZERO) & (counts[i] < MOST_VISITS) else _NO


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
