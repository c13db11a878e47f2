"""Compiled loops of the search for a window in the whole map."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import CONTRACTED, compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import project_fast

_HALF = np.float32(0.5)


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
