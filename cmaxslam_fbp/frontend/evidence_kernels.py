"""Compiled sums for the evidence of a motion."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import REASSOCIATED, compiled

MOST_OF_PIXEL = 3  # events that an edge causes where it passes, or that are enough of them


@compiled
def first_of_pixels(x, y, width, step, seen, taken):
    """Write the places of every `step`-th event, but of the first few of each pixel only; return their number."""
    count = 0
    for i in range(0, len(x), step):
        pixel = np.int64(y[i]) * width + np.int64(x[i])
        if seen[pixel] < MOST_OF_PIXEL:
            seen[pixel] += 1
            taken[count] = i
            count += 1
    return count


@compiled(fastmath=REASSOCIATED)
def factorial_moments(image):
    """Return `sum h`, `sum h (h - 1)` and `sum h (h - 1) (h - 2)` of an image (P,)."""
    first = second = third = 0.0
    for i in range(image.size):
        h = float(image[i])
        first += h
        second += h * (h - 1)
        third += h * (h - 1) * (h - 2)
    return first, second, third


@compiled(fastmath=REASSOCIATED)
def sum_of_cubes(image):
    """Return `sum h^3` of an image (P,)."""
    cubes = 0.0
    for i in range(image.size):
        h = float(image[i])
        cubes += h * h * h
    return cubes
