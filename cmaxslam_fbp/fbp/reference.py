"""Binning and its derivatives in plain NumPy, for any number of dimensions: slow, obvious, the oracle of all tests.

Everything is computed in float64 from the kernels' functions, one neighbouring bin at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.fbp.arguments import Frames, NumpyArguments
from cmaxslam_fbp.fbp.kernels import Kernel


class ReferenceBackend:
    """The oracle: all operations as the equations say them."""

    def __init__(self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel) -> None:
        self.shape = shape
        self.k = forward_kernel
        self.kappa = derivative_kernel
        self._arguments = NumpyArguments(shape, np.float64)

    def count_ignored(self, points: npt.ArrayLike) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return self._arguments.count_ignored(points)

    def forward(self, points: npt.ArrayLike, weights: npt.ArrayLike | None, out: FloatArray | None) -> FloatArray:
        """`h_j = sum_i w_i prod_d k(x_id - j_d)`."""
        x, w = self._arguments.points(points), self._arguments.weights(weights, points)
        frame = self._arguments.output(out, self.shape, np.float64)
        frame[...] = 0
        for inside, bins, factor in self._neighbours(x, self.k, [(0,) * x.shape[1]]):
            np.add.at(frame, bins, (factor[0] if w is None else factor[0] * w[inside]))
        return frame

    def jvp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        points_dot: npt.ArrayLike | None,
        weights_dot: npt.ArrayLike | None,
        out: FloatArray | None,
    ) -> FloatArray:
        """`hdot_j = sum_i w_i sum_d xdot_id d/dx_id prod_e kappa(x_ie - j_e) + sum_i wdot_i prod_d k(x_id - j_d)`."""
        x, w = self._arguments.points(points), self._arguments.weights(weights, points)
        frame = self._arguments.output(out, self.shape, np.float64)
        frame[...] = 0
        if points_dot is not None:
            x_dot = self._arguments.tangents(points_dot, points)
            for inside, bins, factors in self._neighbours(x, self.kappa, np.eye(x.shape[1], dtype=int).tolist()):
                change = np.sum(factors * x_dot[inside].T, 0)
                np.add.at(frame, bins, change if w is None else change * w[inside])
        if weights_dot is not None:
            frame += self.forward(points, self._arguments.weights(weights_dot, points), None)
        return frame

    def vjp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        frame_bar: npt.ArrayLike,
        with_weights: bool,
        out: Frames | None,
    ) -> tuple[FloatArray, FloatArray | None]:
        """`xbar_id = w_i sum_j hbar_j d/dx_id prod_e kappa(x_ie - j_e)`;
        `wbar_i = sum_j hbar_j prod_d k(x_id - j_d)`.
        """
        x, w = self._arguments.points(points), self._arguments.weights(weights, points)
        h_bar = self._arguments.frame(frame_bar)
        out_points, out_weights = (None, None) if out is None else out
        points_bar = self._arguments.output(out_points, x.shape, np.float64)
        points_bar[...] = 0
        for inside, bins, factors in self._neighbours(x, self.kappa, np.eye(x.shape[1], dtype=int).tolist()):
            points_bar[inside] += (factors * h_bar[bins]).T
        if w is not None:
            points_bar *= w[:, None]
        if not with_weights:
            return points_bar, None
        weights_bar = self._arguments.output(out_weights, (len(x),), np.float64)
        weights_bar[...] = 0
        for inside, bins, factor in self._neighbours(x, self.k, [(0,) * x.shape[1]]):
            weights_bar[inside] += factor[0] * h_bar[bins]
        return points_bar, weights_bar

    def hvp(
        self,
        points: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        frame_bar: npt.ArrayLike,
        points_dot: npt.ArrayLike,
        out: FloatArray | None,
    ) -> FloatArray:
        """`w_i sum_j hbar_j sum_e xdot_ie d^2/dx_id dx_ie prod_f kappa(x_if - j_f)`."""
        upper = self.curvatures(points, weights, frame_bar, None)
        x_dot = self._arguments.tangents(points_dot, points)
        result = self._arguments.output(out, x_dot.shape, np.float64)
        matrices = np.empty((*x_dot.shape, x_dot.shape[1]))
        rows, columns = np.triu_indices(x_dot.shape[1])
        matrices[:, rows, columns] = matrices[:, columns, rows] = upper
        return np.einsum("nde,ne->nd", matrices, x_dot, out=result)

    def curvatures(
        self, points: npt.ArrayLike, weights: npt.ArrayLike | None, frame_bar: npt.ArrayLike, out: FloatArray | None
    ) -> FloatArray:
        """`w_i sum_j hbar_j d^2/dx_id dx_ie prod_f kappa(x_if - j_f)` for all `d <= e`."""
        x, w = self._arguments.points(points), self._arguments.weights(weights, points)
        h_bar, unit = self._arguments.frame(frame_bar), np.eye(x.shape[1], dtype=int)
        orders = [(unit[d] + unit[e]).tolist() for d, e in zip(*np.triu_indices(x.shape[1]), strict=True)]
        result = self._arguments.output(out, (len(x), len(orders)), np.float64)
        result[...] = 0
        for inside, bins, factors in self._neighbours(x, self.kappa, orders):
            result[inside] += (factors * h_bar[bins]).T
        if w is not None:
            result *= w[:, None]
        return result

    def _neighbours(
        self, points: FloatArray, kernel: Kernel, orders: list[tuple[int, ...]] | list[list[int]]
    ) -> Iterator[tuple[npt.NDArray[np.bool_], tuple[npt.NDArray[np.intp], ...], FloatArray]]:
        """For each bin around the points: which points have it inside, its indices, and the products of each order.

        The products are (orders, points inside); bin `j` is the nearest one of `[j - 1/2, j + 1/2)`.
        """
        finite = np.asarray(np.isfinite(points).all(1))
        x = np.where(finite[:, None], points, 0)
        x = np.clip(x, -1e9, 1e9)
        whole = np.floor(x)
        if kernel.support % 2 == 1:
            whole += x - whole >= 0.5
        first = whole.astype(np.intp) - (kernel.support - 1) // 2
        # The factor of order n along axis d, kappa^(n)(x_d - j_d), is the same for all offsets along the other axes.
        highest = max(max(order) for order in orders)
        factors = [[kernel.function(x - (first + s), n) for n in range(highest + 1)] for s in range(kernel.support)]
        for offset in product(range(kernel.support), repeat=points.shape[1]):
            bins = first + np.array(offset)
            inside = finite & (bins >= 0).all(1) & (bins < self.shape).all(1)
            # The scale belongs to the whole product.
            products = [
                kernel.scale * np.prod([factors[offset[d]][n][inside, d] for d, n in enumerate(order)], axis=0)
                for order in orders
            ]
            yield inside, tuple(bins[inside].T), np.array(products)
