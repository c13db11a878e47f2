"""What users pass in, as the arrays that the NumPy and Numba backends need; and one line where it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import BinningError

Array = npt.NDArray[Any]
Frames = tuple[Array | None, Array | None]


class NumpyArguments:
    """Checks and converts arguments for frames of one shape.

    Parameters
    ----------
    shape : tuple of int
        The shape of the frame.
    dtype : dtype, optional
        What to compute in. By default that of the points: float32 stays, float16 becomes float32, and
        everything else float64.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike | None = None) -> None:
        self.shape = shape
        self._dtype = None if dtype is None else np.dtype(dtype)

    def points(self, points: npt.ArrayLike) -> Array:
        """Return the points (N, D) in either order of memory, without a copy where they are fit for use."""
        array = np.asarray(points)
        if array.ndim != 2 or array.shape[1] != len(self.shape):
            raise BinningError(f"points must have the shape (N, {len(self.shape)}), not {array.shape}")
        dtype = self._dtype
        if dtype is None:
            dtype = np.dtype(np.float32 if array.dtype in (np.float32, np.float16) else np.float64)
        if array.flags.f_contiguous and array.dtype == dtype:
            return array
        return np.ascontiguousarray(array, dtype)

    def weights(self, weights: npt.ArrayLike | None, points: npt.ArrayLike, dtype: Any = np.float64) -> Array | None:
        """Return the weights (N,), or None for ones."""
        if weights is None:
            return None
        array = np.asarray(weights)
        if array.shape != (len(np.asarray(points)),):
            raise BinningError(f"weights must have the shape ({len(np.asarray(points))},), not {array.shape}")
        return np.ascontiguousarray(array, dtype)

    def tangents(self, points_dot: npt.ArrayLike, points: npt.ArrayLike, dtype: Any = np.float64) -> Array:
        """Return the tangents of the points (N, D)."""
        array = np.asarray(points_dot)
        if array.shape != np.shape(points):
            raise BinningError(f"points_dot must have the shape of points, {np.shape(points)}, not {array.shape}")
        if array.flags.f_contiguous and array.dtype == dtype:
            return array
        return np.ascontiguousarray(array, dtype)

    def frame(self, frame_bar: npt.ArrayLike, dtype: Any = np.float64) -> Array:
        """Return a frame."""
        array = np.asarray(frame_bar)
        if array.shape != self.shape:
            raise BinningError(f"frame_bar must have the shape of the frame, {self.shape}, not {array.shape}")
        return np.ascontiguousarray(array, dtype)

    def count_ignored(self, points: npt.ArrayLike) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return int(np.count_nonzero(~np.isfinite(self.points(points)).all(1)))

    @staticmethod
    def output(out: Array | None, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return `out` where it is given and fits, else a new array. Its contents are not set."""
        if out is None:
            return np.empty(shape, dtype)
        if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
            raise BinningError(f"out must be a writeable C-contiguous {np.dtype(dtype)} array of shape {shape}")
        return out
