"""Fewer points of a curve, for drawing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

MAX_POINTS = 2000


def even_indices(count: int, most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return at most `most` indices of `count` samples, evenly spread, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def peak_indices(values: npt.NDArray[np.float64], most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return at most `most` indices of samples (N,): the largest of each of as many pieces, so that no peak is lost."""
    if len(values) <= most:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), most + 1).round().astype(np.intp)
    return np.array([first + int(np.argmax(values[first:last])) for first, last in pairwise(edges)])
