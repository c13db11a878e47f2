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
from cmaxslam_fbp.fbp.arguments import Array, Frames, NumpyArguments
from cmaxslam_fbp.fbp.bins_numba import lane_table, lanes
from cmaxslam_fbp.fbp.kernels import Kernel
from cmaxslam_fbp.fbp.tables import KernelTable, kernel_table

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


class NumbaBackend:
    """Compiled loops behind the operations. Nothing is compiled before an operation is first called."""

    def __init__(
        self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel, threads: int = 1
    ) -> None:
        if len(shape) > 3:
            raise BinningError("the numba backend has 1 to 3 dimensions: use backend='reference' for more")
        if np.prod(shape, dtype=np.float64) > _MAX_BINS:
            raise BinningError(f"the numba backend has frames of at most {_MAX_BINS} bins")
        self.shape = shape
        self._kernels = (forward_kernel, derivative_kernel)
        self._arguments = NumpyArguments(shape)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self._row = shape[-1]
        self._plane = int(np.prod(shape[1:], dtype=np.int64))
        self._compiled: dict[tuple[bool, np.dtype[Any]], CompiledKernel] = {}

    def count_ignored(self, points: npt.ArrayLike) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return self._arguments.count_ignored(points)

    def forward(self, points: npt.ArrayLike, weights: npt.ArrayLike | None, out: Array | None) -> Array:
        """`h_j = sum_i w_i prod_d k(x_id - j_d)`."""
        x = self._arguments.points(points)
        frame = self._arguments.output(out, self.shape, x.dtype)
        frame.fill(0)
        self._add_values(x, self._arguments.weights(weights, points, x.dtype), frame)
        return frame

    def jvp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        points_dot: npt.ArrayLike | None,
        weights_dot: npt.ArrayLike | None,
        out: Array | None,
    ) -> Array:
        """`hdot_j = sum_i w_i sum_d xdot_id d/dx_id prod_e kappa(x_ie - j_e) + sum_i wdot_i prod_d k(x_id - j_d)`."""
        x = self._arguments.points(points)
        frame = self._arguments.output(out, self.shape, x.dtype)
        frame.fill(0)
        if points_dot is not None:
            w = self._arguments.weights(weights, points, x.dtype)
            x_dot = self._arguments.tangents(points_dot, points, x.dtype)
            kappa = self._kernel(is_forward=False, dtype=x.dtype)
            self._scatter(1, (x, w, x_dot), frame, kappa)
        if weights_dot is not None:
            self._add_values(x, self._arguments.weights(weights_dot, points, x.dtype), frame)
        return frame

    def vjp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        frame_bar: npt.ArrayLike,
        with_weights: bool,
        out: Frames | None,
    ) -> tuple[Array, Array | None]:
        """`xbar_id = w_i sum_j hbar_j d/dx_id prod_e kappa(x_ie - j_e)`;
        `wbar_i = sum_j hbar_j prod_d k(x_id - j_d)`.
        """
        x = self._arguments.points(points)
        w = self._arguments.weights(weights, points, x.dtype)
        h_bar = self._arguments.frame(frame_bar, x.dtype)
        out_points, out_weights = (None, None) if out is None else out
        points_bar = self._arguments.output(out_points, x.shape, x.dtype)
        self._gather(1, (x, w, None), h_bar, points_bar, self._kernel(is_forward=False, dtype=x.dtype))
        if not with_weights:
            return points_bar, None
        weights_bar = self._arguments.output(out_weights, (len(x),), x.dtype)
        k = self._kernel(is_forward=True, dtype=x.dtype)
        self._gather(0, (x, None, None), h_bar, weights_bar.reshape(-1, 1), k)
        return points_bar, weights_bar

    def hvp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        frame_bar: npt.ArrayLike,
        points_dot: npt.ArrayLike,
        out: Array | None,
    ) -> Array:
        """`w_i sum_j hbar_j sum_e xdot_ie d^2/dx_id dx_ie prod_f kappa(x_if - j_f)`."""
        x = self._arguments.points(points)
        w = self._arguments.weights(weights, points, x.dtype)
        h_bar = self._arguments.frame(frame_bar, x.dtype)
        x_dot = self._arguments.tangents(points_dot, points, x.dtype)
        products = self._arguments.output(out, x.shape, x.dtype)
        self._gather(2, (x, w, x_dot), h_bar, products, self._kernel(is_forward=False, dtype=x.dtype))
        return products

    def curvatures(
        self, points: npt.ArrayLike, weights: npt.ArrayLike | None, frame_bar: npt.ArrayLike, out: Array | None
    ) -> Array:
        """`w_i sum_j hbar_j d^2/dx_id dx_ie prod_f kappa(x_if - j_f)` for all `d <= e`."""
        x = self._arguments.points(points)
        w = self._arguments.weights(weights, points, x.dtype)
        h_bar = self._arguments.frame(frame_bar, x.dtype)
        curvatures = self._arguments.output(out, (len(x), x.shape[1] * (x.shape[1] + 1) // 2), x.dtype)
        self._gather(2, (x, w, None), h_bar, curvatures, self._kernel(is_forward=False, dtype=x.dtype))
        return curvatures

    def _kernel(self, *, is_forward: bool, dtype: np.dtype[Any]) -> CompiledKernel:
        key = (is_forward, dtype)
        if key not in self._compiled:
            kernel = self._kernels[0 if is_forward else 1]
            self._compiled[key] = CompiledKernel(self.shape, kernel, dtype, self._threads)
        return self._compiled[key]

    def _add_values(self, points: Array, weights: Array | None, frame: Array) -> None:
        """Add the binned values to the frame: the rect kernel has a loop of its own."""
        k = self._kernel(is_forward=True, dtype=points.dtype)
        if k.table.support > 1:
            self._scatter(0, (points, weights, None), frame, k)
            return
        nearest = make_loop(loops.make_scatter_nearest, len(self.shape))
        flat = frame.reshape(-1)
        self._run(
            [
                (nearest, (points, weights, flat, self._plane, self._row, part.inner, part.spare, part.size >= 16))
                for part in k.parts
            ]
        )

    def _scatter(self, order: int, events: tuple[Array | None, ...], frame: Array, kernel: CompiledKernel) -> None:
        """Add to the frame what points, weights and tangents give."""
        loop = make_loop(loops.make_scatter, order, *kernel.constants)
        arguments = (*events, kernel.coefficients, frame.reshape(-1), self._plane, self._row)

        def run(part: Bounds) -> None:
            chosen = None
            if len(kernel.parts) > 1:
                chosen = make_loop(loops.make_choose_rows)(arguments[0], part.outer[0, 0], part.outer[1, 0])
            loop(*arguments, part.inner, part.outer, part.limits, chosen)

        self._run([(run, (part,)) for part in kernel.parts])

    def _gather(
        self, order: int, events: tuple[Array | None, ...], frame: Array, found: Array, kernel: CompiledKernel
    ) -> None:
        """Write what points, weights and tangents find in the frame."""
        is_along = events[2] is not None
        loop, bounds = make_loop(loops.make_gather, order, is_along, *kernel.constants), kernel.bounds
        edges = [len(found) * part // self._threads for part in range(self._threads + 1)]
        shared = (*events, kernel.coefficients, frame.reshape(-1), found, self._plane, self._row)
        self._run([(loop, (*shared, bounds.inner, bounds.outer, bounds.limits, a, b)) for a, b in pairwise(edges)])

    def _run(self, calls: list[tuple[Any, tuple[Any, ...]]]) -> None:
        """Run the calls, the first one in this thread."""
        others = [self._pool.submit(loop, *args) for loop, args in calls[1:]] if self._pool is not None else []
        loop, args = calls[0]
        loop(*args)
        for other in others:
            other.result()
