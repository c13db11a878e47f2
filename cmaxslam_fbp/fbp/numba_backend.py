"""The compiled backend: one, two and three dimensions, float32 and float64, one thread or more with the same bits.

Work is shared so that every number is computed by one thread in the order of events. A gather splits the events.
A scatter splits the frame: each thread goes through all events and adds to the bins that it owns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp import loops_numba as loops
from cmaxslam_fbp.fbp.array_backend import Array, ArrayBackend
from cmaxslam_fbp.fbp.kernels import Kernel
from cmaxslam_fbp.fbp.tables import KernelTable, kernel_table, lane_table, lanes

_MAX_BINS = 2**31 - 1
make_loop: Callable[..., Any] = lru_cache(maxsize=None)(lambda make, *constants: make(*constants))


@dataclass(frozen=True)
class Bounds:
    """The bins that a loop may use, as the arrays that it takes: see `loops_numba`."""

    limits: npt.NDArray[np.int64]  # (3, 2)
    inner: Array  # (2, D)
    outer: Array  # (2, D)
    spare: int
    size: int


def make_bounds(shape: Sequence[int], support: int, dtype: Any, rows: tuple[int, int] | None = None) -> Bounds:
    """Return the bounds of a frame, or of some of its rows: those of the half-open range of the first axis."""
    dimensions = len(shape)
    limits = np.array([[0, 1]] * (3 - dimensions) + [[0, n] for n in shape], np.int64)
    if rows is not None:
        limits[3 - dimensions] = rows
    begin, end = limits[3 - dimensions :].T
    # A point at x touches the bins from floor(x + half) - reach on; a vector is read whole along the last axis.
    half, reach = 0.5 * (support % 2), (support - 1) // 2
    width = np.array([support] * (dimensions - 1) + [lanes(support)])
    inner = np.array([begin + reach - half, end - width + 1 + reach - half], dtype)
    outer = np.array([begin + reach - half - support + 1, end + reach - half], dtype)
    step = int(np.prod(shape[1:], dtype=np.int64))
    return Bounds(limits, inner, outer, int(begin[0]) * step, int(end[0] - begin[0]) * step)


class CompiledKernel:
    """A kernel ready for compiled loops over one shape of frame, in one type of number.

    Attributes
    ----------
    table : KernelTable
        The polynomials.
    constants : (dimensions, support, degree)
        What a loop must know when it is compiled.
    coefficients : (degree + 1, lanes)
        The table as `bins_numba.gather` and `scatter` take it.
    bounds : Bounds
        The whole frame.
    parts : list of Bounds
        The rows of the frame that each of the threads owns.
    """

    def __init__(self, shape: tuple[int, ...], kernel: Kernel, dtype: Any, threads: int = 1) -> None:
        self.table: KernelTable = kernel_table(kernel, len(shape), is_single_precision=dtype == np.float32)
        self.constants = (len(shape), self.table.support, self.table.degree)
        self.coefficients = lane_table(self.table.coefficients, dtype)
        edges = [shape[0] * part // threads for part in range(threads + 1)]
        rows = [(a, b) for a, b in pairwise(edges) if b > a]
        self.bounds = make_bounds(shape, self.table.support, dtype)
        self.parts = [make_bounds(shape, self.table.support, dtype, part) for part in rows]


class NumbaBackend(ArrayBackend):
    """Compiled loops behind the two operations. Nothing is compiled before an operation is first called."""

    def __init__(
        self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel, threads: int = 1
    ) -> None:
        if len(shape) > 3:
            raise BinningError("the numba backend has 1 to 3 dimensions: use backend='reference' for more")
        if np.prod(shape, dtype=np.float64) > _MAX_BINS:
            raise BinningError(f"the numba backend has frames of at most {_MAX_BINS} bins")
        super().__init__(shape)
        self._kernels = (forward_kernel, derivative_kernel)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self._row = shape[-1]
        self._plane = int(np.prod(shape[1:], dtype=np.int64))
        self._compiled: dict[tuple[bool, np.dtype[Any]], CompiledKernel] = {}

    def scatter(self, order: int, x: Array, w: Array | None, x_dot: Array | None, frame: Array | None) -> Array:
        """Add `sum_i w_i prod_d k(x_id - j_d)`, or for order 1 its derivative along `x_dot`, to the frame."""
        frame = self.zeros(x, None) if frame is None else frame
        kernel, flat = self._kernel(order, x.dtype), frame.reshape(-1)
        if order == 0 and kernel.table.support == 1:  # the rect kernel has a loop of its own
            nearest = make_loop(loops.make_scatter_nearest, len(self.shape))
            self._share(
                lambda part: nearest(x, w, flat, self._plane, self._row, part.inner, part.spare, part.size >= 16),
                kernel.parts,
            )
            return frame
        loop = make_loop(loops.make_scatter, order, *kernel.constants)

        def add(part: Bounds) -> None:
            chosen = None
            if len(kernel.parts) > 1:
                chosen = make_loop(loops.make_choose_rows)(x, part.outer[0, 0], part.outer[1, 0])
            shape = self._plane, self._row, part.inner, part.outer, part.limits
            loop(x, w, x_dot, kernel.coefficients, flat, *shape, chosen)

        self._share(add, kernel.parts)
        return frame

    def gather(
        self, order: int, x: Array, w: Array | None, x_dot: Array | None, frame: Array, out: Array | None
    ) -> Array:
        """Return `w_i sum_j h_j D prod_d k(x_id - j_d)`, `D` all derivatives of the order, or that along `x_dot`."""
        found = self.found(order, x, x_dot, out)
        rows = found.reshape(-1, 1) if order == 0 else found
        kernel = self._kernel(order, x.dtype)
        loop, bounds = make_loop(loops.make_gather, order, x_dot is not None, *kernel.constants), kernel.bounds
        shape = self._plane, self._row, bounds.inner, bounds.outer, bounds.limits
        flat = frame.reshape(-1)
        edges = [len(x) * part // self._threads for part in range(self._threads + 1)]
        self._share(lambda part: loop(x, w, x_dot, kernel.coefficients, flat, rows, *shape, *part), [*pairwise(edges)])
        return found

    def _kernel(self, order: int, dtype: np.dtype[Any]) -> CompiledKernel:
        """Return `k` for values, and `kappa` for derivatives."""
        key = (order == 0, dtype)
        if key not in self._compiled:
            kernel = self._kernels[0 if order == 0 else 1]
            self._compiled[key] = CompiledKernel(self.shape, kernel, dtype, self._threads)
        return self._compiled[key]

    def _share(self, work: Callable[[Any], None], parts: list[Any]) -> None:
        """Do the work for every part, one per thread; the first one in this thread."""
        others = [self._pool.submit(work, part) for part in parts[1:]] if self._pool is not None else []
        work(parts[0])
        for other in others:
            other.result()
