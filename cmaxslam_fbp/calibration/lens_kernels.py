"""Compiled pullback of the panoramic warp to the directions that pixels see."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import REASSOCIATED, compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import direction_gradient

_ONE = np.float32(1)


@compiled(fastmath=REASSOCIATED)
def pullback_to_pixels(first, place, x, y, bearings, rotations, focal, points_bar, table):
    """Add to the table (height, width, 3) the gradient by the direction `b` that each pixel sees.

    `p = pi(R b)`, so it is `R^T (d pi / dX)^T` of the event's cotangent. The arguments are those of
    `panoramic_warp_kernels.pullback`, `x` and `y` (N,) the events' pixels, and the table is float64.
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
