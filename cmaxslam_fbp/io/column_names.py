"""What people call the columns of events, and the forms in which MATLAB keeps them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import numpy.typing as npt

# The names that people give to the columns, in the order of `events_from_arrays`.
COLUMN_NAMES = {
    "t": ("ts", "t", "timestamp", "timestamps", "time"),
    "x": ("x",),
    "y": ("y",),
    "p": ("pol", "p", "polarity", "on"),
}


def column_names(names: Container[str]) -> dict[str, str] | None:
    """Return what each of the columns t, x, y and p is called among names, or None where one is missing."""
    found = {column: next((n for n in known if n in names), None) for column, known in COLUMN_NAMES.items()}
    return None if None in found.values() else {column: str(name) for column, name in found.items()}


def as_list(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a matrix of one row or one column, as MATLAB has no lists, as a list."""
    return array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array


def whole_numbers(t: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return times that MATLAB stores as floating point, as all its numbers, but that count in whole ticks."""
    if t.dtype.kind == "f" and len(t) and np.abs(t).max() < 2**53 and (t == np.floor(t)).all():
        return t.astype(np.int64)
    return t
