"""Compiled accumulation of what pairs of events say about the gradient of a bilinear map.

The map's log intensity is bilinear between its pixels: `M(p) = sum_k N_k(p) M_k` over the four corners `k` of the cell
that `p` lies in, with the linear binning kernel's weights `N_k`. So `grad M(p).d = sum_k g_k M_k`, with
`g_k = grad N_k(p).d`, and the normal equations of a cell are those of its four corners.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import CONTRACTED, compiled

# Per cell: the ten entries of `sum g g^T` on and above the diagonal, then `sum g` of the brighter and of the darker
# events (four each), then `sum |d|^2`, with the length on the sphere.
ENTRIES, BRIGHTER, DARKER, WEIGHT, NUMBERS = 10, 10, 14, 18, 20

_HALF, _ONE = np.float32(0.5), np.float32(1)


@compiled(fastmath=CONTRACTED)
def add_pairs(points, x, y, p, sensor_width, cosines, width, shortest, longest, last, cells):
    """Add each event with the one before it at its pixel.

    Parameters
    ----------
    points : (2 N,) float32
        Row and column of every event on the map.
    x, y, p : (N,)
        Pixel and polarity.
    sensor_width : int
        Pixels in a row of the sensor.
    cosines : (H,) float32
        Cosine of the latitude of the map's rows.
    width : float32
        Columns of the map.
    shortest, longest : float32
        Pairs whose points are nearer or farther on the sphere, in pixels of its equator, are left out.
    last : (P, 2) float32
        In and out: row and column of the last event of every pixel of the sensor; a row below 0 where there is none.
    cells : (H - 1, W, NUMBERS) float32
        In and out: the sums.
    """
    half = _HALF * width
    for i in range(len(x)):
        pixel = np.int64(y[i]) * sensor_width + x[i]
        row, column = points[2 * i], points[2 * i + 1]
        row_before, column_before = last[pixel, 0], last[pixel, 1]
        last[pixel, 0], last[pixel, 1] = row, column
        if row_before < 0:
            continue
        down, right = row - row_before, column - column_before
        right = right - width if right > half else right
        right = right + width if right < -half else right
        r = row - _HALF * down
        c = column - _HALF * right
        c = c + width if c < 0 else c
        c = c - width if c >= width else c
        i0, j0 = int(r), int(c)
        if i0 >= cells.shape[0]:
            continue
        along = right * cosines[i0]
        square = down * down + along * along
        if square > longest * longest or square < shortest * shortest:
            continue
        a, b = r - np.float32(i0), c - np.float32(j0)
        g0 = -down * (_ONE - b) - right * (_ONE - a)
        g1 = -down * b + right * (_ONE - a)
        g2 = down * (_ONE - b) - right * a
        g3 = down * b + right * a
        cell = cells[i0, j0]
        cell[0] += g0 * g0
        cell[1] += g0 * g1
        cell[2] += g0 * g2
        cell[3] += g0 * g3
        cell[4] += g1 * g1
        cell[5] += g1 * g2
        cell[6] += g1 * g3
        cell[7] += g2 * g2
        cell[8] += g2 * g3
        cell[9] += g3 * g3
        first = BRIGHTER if p[i] > 0 else DARKER
        cell[first] += g0
        cell[first + 1] += g1
        cell[first + 2] += g2
        cell[first + 3] += g3
        cell[WEIGHT] += square
