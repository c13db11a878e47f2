"""What users pass in, as the arrays that the Numba and reference backends need; and one line where it does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import BinningError

Array = npt.NDArray[Any]


class ArrayBackend:
    """What backends on arrays have in common: they check and convert the arguments for frames of one shape.

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
        own = np.float32 if array.dtype in (np.float32, np.float16) else np.float64
        return _fit(array, self._dtype or np.dtype(own))

    def like(self, values: npt.ArrayLike, x: Array, shape: tuple[int, ...], name: str) -> Array:
        """Return what belongs to the points `x`, in their type; a `BinningError` where it has another shape."""
        array = np.asarray(values)
        if array.shape != shape:
            raise BinningError(f"{name} must have the shape {shape}, not {array.shape}")
        return _fit(array, x.dtype)

    def zeros(self, x: Array, out: Array | None) -> Array:
        """Return an empty frame for the points."""
        frame = self.output(out, self.shape, x.dtype)
        frame.fill(0)
        return frame

    def found(self, order: int, x: Array, x_dot: Array | None, out: Array | None) -> Array:
        """Return the array for what points find in a frame. Its contents are not set.

        Values (N,), gradients (N, D), second derivatives times a tangent (N, D), or their upper triangles.
        """
        count, dimensions = x.shape
        if order == 2 and x_dot is None:
            return self.output(out, (count, dimensions * (dimensions + 1) // 2), x.dtype)
        return self.output(out, (count,) if order == 0 else x.shape, x.dtype)

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


def _fit(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return an array of a type that is contiguous, in either order of memory."""
    return array if array.flags.f_contiguous and array.dtype == dtype else np.ascontiguousarray(array, dtype)
