"""Points across the border of a frame: their bins are copied to, or from, a small frame of their own.

`limits` (3, 2) holds the half-open ranges of bins that may be used. Axes that a frame does not have count as one bin.
"""

# mypy: ignore-errors
# Numba gives types to what its decorators see; mypy cannot follow.

import math

from cmaxslam_fbp.compiling import compiled


@compiled
def touches(point, outer):
    """Return whether the point is within the ranges (2, D), where it touches at least one bin. False for NaN."""
    is_near = True
    for d in range(len(point)):
        is_near &= outer[0, d] <= point[d] < outer[1, d]
    return is_near


@compiled
def find_first(point, support, first):
    """Write the first bin of the point along each of three axes (zero for those it does not have) to `first`."""
    size = len(point)
    for d in range(size):
        whole = math.floor(point[d])
        if support % 2 == 1 and point[d] - whole >= 0.5:
            whole += 1
        first[3 - size + d] = whole - (support - 1) // 2


@compiled
def read_patch(patch, frame, plane, row, first, limits):
    """Copy the bins from `first` on to the patch, and zero where they are not inside the limits."""
    patch[:] = 0
    low, high = max(limits[2, 0] - first[2], 0), min(limits[2, 1] - first[2], patch.shape[2])
    for a in range(patch.shape[0]):
        i = first[0] + a
        for b in range(patch.shape[1]):
            j = first[1] + b
            if limits[0, 0] <= i < limits[0, 1] and limits[1, 0] <= j < limits[1, 1]:
                for c in range(low, high):
                    patch[a, b, c] = frame[i * plane + j * row + first[2] + c]


@compiled
def add_patch(patch, frame, plane, row, first, limits):
    """Add the patch to the bins from `first` on that are inside the limits."""
    low, high = max(limits[2, 0] - first[2], 0), min(limits[2, 1] - first[2], patch.shape[2])
    for a in range(patch.shape[0]):
        i = first[0] + a
        for b in range(patch.shape[1]):
            j = first[1] + b
            if limits[0, 0] <= i < limits[0, 1] and limits[1, 0] <= j < limits[1, 1]:
                for c in range(low, high):
                    frame[i * plane + j * row + first[2] + c] += patch[a, b, c]
