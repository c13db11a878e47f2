"""Compiled loops over the map: what the camera has in view, and how well windows agree with it."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import CONTRACTED, compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import project_fast

_ZERO, _HALF = np.float32(0), np.float32(0.5)
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


@compiled(fastmath=CONTRACTED)
def score_rotations(rotations, directions, values, weights, known, factor, size, least_overlap, scores):
    """Write the correlation of a window's cells with the map, where the map is known, for each rotation.

    Cell `i` with the direction `d_i` is compared with the block of the map that `R d_i` lies in. Too little of the
    window on the known map scores -1.

    `rotations` (M, 9) float32, `directions` (3, C) float32, `values` (C,) float32 and `weights` (C,) float32 the
    cells' values and numbers of events; `known` (rows, columns) float32 the map's values, negative where nothing is
    known, in blocks of `factor` pixels of a panorama of `size` (width, height, focal length) float32; `scores` (M,).
    """
    width, height, focal = size
    rows, columns = known.shape
    count = directions.shape[1]
    places = np.empty(count, np.int32)
    scale = np.float32(1) / factor
    total = 0.0
    for i in range(count):
        total += weights[i]
    for m in range(len(rotations)):
        r = rotations[m]
        r0, r1, r2, r3, r4, r5, r6, r7, r8 = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]
        for i in range(count):
            x, y, z = directions[0, i], directions[1, i], directions[2, i]
            u, v = project_fast(
                r0 * x + r1 * y + r2 * z,
                r3 * x + r4 * y + r5 * z,
                r6 * x + r7 * y + r8 * z,
                width,
                height,
                focal,
            )
            column, row = np.int32((u + _HALF) * scale), np.int32((v + _HALF) * scale)
            row = row if row < rows else rows - 1
            column = column if u + _HALF < width else 0
            places[i] = row * columns + column
        flat = known.reshape(-1)
        n = 0
        overlap = a = b = aa = bb = ab = 0.0
        for i in range(count):
            q = flat[places[i]]
            if q >= 0:
                p = values[i]
                n += 1
                overlap += weights[i]
                a += p
                b += q
                aa += p * p
                bb += q * q
                ab += p * q
        if overlap < least_overlap * total or n < 2:
            scores[m] = -1.0
            continue
        norm = (aa - a * a / n) * (bb - b * b / n)
        scores[m] = (ab - a * b / n) / np.sqrt(norm) if norm > 0 else -1.0
