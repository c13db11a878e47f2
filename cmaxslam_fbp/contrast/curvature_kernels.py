"""Compiled second derivatives of a binning with respect to each point, in the plane."""

# mypy: ignore-errors

from typing import Any

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.fbp.bins_numba import gather, lanes, locate
from cmaxslam_fbp.fbp.patch_numba import find_first, read_patch, touches
from cmaxslam_fbp.fbp.points_numba import point_at, put_point, scaled


def make_gather_curvatures(SUPPORT: int, DEGREE: int) -> Any:
    """`C_i = w_i sum_j frame_j d2/dx_i2 prod_d kappa(x_id - j_d)`: row-row, row-column, column-column, (N, 3)."""
    WIDTH = lanes(SUPPORT)

    @compiled
    def gather_curvatures(points, weights, table, frame, curvatures, row, inner, outer, limits):
        patch, first = np.zeros((1, SUPPORT, WIDTH), frame.dtype), np.zeros(3, np.int64)
        for i in range(points.shape[0]):
            point = point_at(points, i, 2)
            inside, index, u = locate(point, inner, 0, row, SUPPORT)
            if inside:
                curvature = gather(frame, index, 0, row, u, table, SUPPORT, DEGREE, 2)
            elif touches(point, outer):
                find_first(point, SUPPORT, first)
                read_patch(patch, frame, 0, row, first, limits)
                curvature = gather(patch, 0, 0, WIDTH, u, table, SUPPORT, DEGREE, 2)
            else:
                curvatures[i] = 0
                continue
            if weights is not None:
                curvature = scaled(curvature, weights[i])
            put_point(curvatures, i, curvature)

    return gather_curvatures
