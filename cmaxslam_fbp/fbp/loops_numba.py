"""The compiled loops over events: scatter to a frame, gather from it.

Frames are flat; `plane` and `row` are the steps of their leading axes. `limits` (3, 2) holds the bins that a call may
use: those of the frame, or of the part of it that one thread owns. `inner` and `outer` (2, D) hold the ranges of
coordinates whose bins are all within these limits, and that touch at least one of them. A point across the border
goes through a patch, a small frame of its own, so that the fast path needs no checks. Points that touch nothing, NaN
among them, are skipped.

Each loop is made per shape of kernel (dimensions, support, degree); Numba compiles it per type of array (float32 or
float64, weights or none) and caches that on disk.
"""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

from typing import Any

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.fbp.bins_numba import gather, locate, scatter
from cmaxslam_fbp.fbp.nearest_numba import scatter_nearest
from cmaxslam_fbp.fbp.patch_numba import add_patch, find_first, read_patch, touches
from cmaxslam_fbp.fbp.points_numba import apply_curvature, point_at, put_point, scaled
from cmaxslam_fbp.fbp.tables import lanes

_BATCH = 16  # points per step of the rect kernel: the fastest of 4, 8 and 16


def make_scatter_nearest(DIMENSIONS: int) -> Any:
    """`frame_j += sum_i w_i rect(x_i - j)`: every point to its nearest bin."""

    @compiled
    def scatter_to_nearest(points, weights, frame, plane, row, inner, spare, is_large):
        start = 0
        if is_large:  # there are as many bins to spare as points in a batch
            start = points.shape[0] - points.shape[0] % _BATCH
            for i in range(0, start, _BATCH):
                scatter_nearest(points, i, weights, frame, inner, plane, row, spare, DIMENSIONS, _BATCH)
        for i in range(start, points.shape[0]):
            scatter_nearest(points, i, weights, frame, inner, plane, row, spare, DIMENSIONS, 1)

    return scatter_to_nearest


def make_choose_rows() -> Any:
    """Return the indices, in order, of the points that touch a range of rows: `low <= x_i0 < high`.

    A thread that owns part of a frame passes over the other points here, without a branch that half of them mispredict.
    """

    @compiled
    def choose_rows(points, low, high):
        chosen = np.empty(points.shape[0], np.int32)
        count = 0
        for i in range(points.shape[0]):
            chosen[count] = i
            count += (points[i, 0] >= low) & (points[i, 0] < high)
        return chosen[:count]

    return choose_rows


def make_scatter(ORDER: int, DIMENSIONS: int, SUPPORT: int, DEGREE: int) -> Any:
    """Order 0, without `points_dot`: `frame_j += sum_i w_i prod_d k(x_id - j_d)`.

    Order 1: `frame_j += sum_i w_i sum_d xdot_id d/dx_id prod_e kappa(x_ie - j_e)`.
    """
    A, B, C = _patch_shape(DIMENSIONS, SUPPORT)

    @compiled
    def scatter_all(points, weights, points_dot, table, frame, plane, row, inner, outer, limits, chosen):
        patch, first = np.zeros((A, B, C), frame.dtype), np.zeros(3, np.int64)
        for j in range(points.shape[0] if chosen is None else chosen.shape[0]):
            i = j if chosen is None else chosen[j]
            point = point_at(points, i, DIMENSIONS)
            weight = frame.dtype.type(1) if weights is None else weights[i]
            if ORDER == 0:
                amounts = (weight,)
            else:
                amounts = scaled(point_at(points_dot, i, DIMENSIONS), weight)
            inside, index, u = locate(point, inner, plane, row, SUPPORT)
            if inside:
                scatter(frame, index, plane, row, u, table, amounts, SUPPORT, DEGREE, ORDER)
            elif touches(point, outer):
                patch[:] = 0
                find_first(point, SUPPORT, first)
                scatter(patch, 0, B * C, C, u, table, amounts, SUPPORT, DEGREE, ORDER)
                add_patch(patch, frame, plane, row, first, limits)

    return scatter_all


def make_gather(ORDER: int, IS_ALONG: bool, DIMENSIONS: int, SUPPORT: int, DEGREE: int) -> Any:
    """Write `w_i sum_j frame_j D prod_d kappa(x_id - j_d)` to `found` (N, ...), with the derivatives `D` of the order.

    These are the value, the gradient, or the upper triangle of the Hessian; or the product of the Hessian with
    `points_dot`, if it is asked for along that.
    """
    A, B, C = _patch_shape(DIMENSIONS, SUPPORT)

    @compiled
    def gather_all(points, weights, points_dot, table, frame, found, plane, row, inner, outer, limits, begin, end):
        patch, first = np.zeros((A, B, C), frame.dtype), np.zeros(3, np.int64)
        for i in range(begin, end):
            point = point_at(points, i, DIMENSIONS)
            inside, index, u = locate(point, inner, plane, row, SUPPORT)
            if inside:
                derivatives = gather(frame, index, plane, row, u, table, SUPPORT, DEGREE, ORDER)
            elif touches(point, outer):
                find_first(point, SUPPORT, first)
                read_patch(patch, frame, plane, row, first, limits)
                derivatives = gather(patch, 0, B * C, C, u, table, SUPPORT, DEGREE, ORDER)
            else:
                found[i] = 0
                continue
            if IS_ALONG:
                result = apply_curvature(derivatives, point_at(points_dot, i, DIMENSIONS))
            else:
                result = derivatives
            if weights is not None:
                result = scaled(result, weights[i])
            put_point(found, i, result)

    return gather_all


def _patch_shape(dimensions: int, support: int) -> tuple[int, int, int]:
    """Return the shape of the bins of one point, the last axis as wide as a vector."""
    return (support if dimensions > 2 else 1, support if dimensions > 1 else 1, lanes(support))
