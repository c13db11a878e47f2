"""Compiled residuals of pairs of events against a gradient map, and their derivatives."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.geometry.equirectangular_kernels import project_fast, rotation_gradient


@compiled
def compare_pairs(
    bearings, change, rotations, rotations_before, width, height, focal, gradient, slope, pixel, moved, residual, pulls
):
    """Write what each pair says about map and motion: `e = (G_j + H_j (p - j)).d - s C`.

    The pixel of the sensor looked at `p' = pi(R(t') b)` and at `p'' = pi(R(t) b)`; `d = p'' - p'`, `p` lies midway, `j`
    is the pixel of the map that is nearest to it, with the gradient `G_j` and its slope `H_j = dG/dp`.

    Parameters
    ----------
    bearings : (N, 3) float64
        Directions `b` in the camera.
    change : (N,) float64
        `s C`.
    rotations, rotations_before : (N, 3, 3) float64
        `R(t)` and `R(t')`.
    width, height, focal : float
        Of the map, in pixels and pixels per radian.
    gradient : (H, W, 2) float64
        By column and row.
    slope : (H, W, 2, 2) float64
        `slope[..., a, b]` is the derivative of component `a` by coordinate `b`.
    pixel : (N,) int64
        Out: `j` as `row W + column`.
    moved : (N, 2) float64
        Out: `d`, column and row.
    residual : (N,) float64
        Out: `e`.
    pulls : (N, 2, 3) float64, or (0, 2, 3)
        Out: derivatives of `e` by turns `exp(phi)` on the left of `R(t')` and of `R(t)`.
    """
    rows, columns = gradient.shape[:2]
    for n in range(len(change)):
        x, y, z = _turn(rotations_before[n], bearings[n])
        X, Y, Z = _turn(rotations[n], bearings[n])
        u, v = project_fast(x, y, z, width, height, focal)
        U, V = project_fast(X, Y, Z, width, height, focal)
        du, dv = U - u, V - v
        du -= width * np.round(du / width)
        row, column = int(np.round(V - 0.5 * dv)), int(np.round(U - 0.5 * du))
        moved[n, 0], moved[n, 1] = du, dv
        row = min(max(row, 0), rows - 1)
        beside, below = U - 0.5 * du - column, V - 0.5 * dv - row
        column %= columns
        pixel[n] = row * columns + column
        H = slope[row, column]
        gu = gradient[row, column, 0] + H[0, 0] * beside + H[0, 1] * below
        gv = gradient[row, column, 1] + H[1, 0] * beside + H[1, 1] * below
        residual[n] = gu * du + gv * dv - change[n]
        if len(pulls) > 0:
            hu = 0.5 * (H[0, 0] * du + H[1, 0] * dv)
            hv = 0.5 * (H[0, 1] * du + H[1, 1] * dv)
            pulls[n, 0, 0], pulls[n, 0, 1], pulls[n, 0, 2] = rotation_gradient(x, y, z, focal, hu - gu, hv - gv)
            pulls[n, 1, 0], pulls[n, 1, 1], pulls[n, 1, 2] = rotation_gradient(X, Y, Z, focal, hu + gu, hv + gv)


@compiled(inlined=True)
def _turn(R, b):
    """Return `R b`."""
    return (
        R[0, 0] * b[0] + R[0, 1] * b[1] + R[0, 2] * b[2],
        R[1, 0] * b[0] + R[1, 1] * b[1] + R[1, 2] * b[2],
        R[2, 0] * b[0] + R[2, 1] * b[1] + R[2, 2] * b[2],
    )


@compiled
def write_rows(pulls, first_before, jacobians_before, first, jacobians, starts, data, columns):
    """Write rows of a sparse matrix: derivatives by turns of the control rotations, of which neighbours may be shared.

    Parameters
    ----------
    pulls : (N, 2, 3) float64
        Derivatives by turns at the two times of a pair.
    first_before, first : (N,) int64
        The first control rotations that act at the two times.
    jacobians_before, jacobians : (N, order, 3, 3) float64
        How the two rotations turn with their control rotations.
    starts : (N + 1,) int64
        Where the rows begin: each has `order + min(first - first_before, order)` blocks of three numbers.
    data, columns
        Out: the numbers of all rows, and the columns that they stand in.
    """
    order = jacobians.shape[1]
    for n in range(len(pulls)):
        start = starts[n]
        second = max(first[n], first_before[n] + order)
        for k in range(starts[n + 1] - start):
            data[start + k] = 0.0
            block = k // 3
            control = first_before[n] + block if block < order else second + block - order
            columns[start + k] = 3 * control + k % 3
        for k in range(order):
            c = first[n] + k - first_before[n]
            place = c if c < order else order + first[n] + k - second
            for r in range(3):
                for s in range(3):
                    data[start + 3 * k + r] += pulls[n, 0, s] * jacobians_before[n, k, s, r]
                    data[start + 3 * place + r] += pulls[n, 1, s] * jacobians[n, k, s, r]
