"""Binning and its derivatives in plain NumPy, for any number of dimensions: slow, obvious, the oracle of all tests.

Everything is computed in float64 from the kernels' functions, one neighbouring bin at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.fbp.array_backend import ArrayBackend
from cmaxslam_fbp.fbp.kernels import Kernel, derivative_orders


class ReferenceBackend(ArrayBackend):
    """The oracle: both operations as the equations say them."""

    def __init__(self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel) -> None:
        super().__init__(shape, np.float64)
        self._kernels = forward_kernel, derivative_kernel, derivative_kernel

    def scatter(
        self, order: int, x: FloatArray, w: FloatArray | None, x_dot: FloatArray | None, frame: FloatArray | None
    ) -> FloatArray:
        """Add `sum_i w_i prod_d k(x_id - j_d)`, or for order 1 its derivative along `x_dot`, to the frame."""
        frame = self.zeros(x, None) if frame is None else frame
        for inside, bins, factors in self._neighbours(order, x):
            share = factors[0] if x_dot is None else np.sum(factors * x_dot[inside].T, 0)
            np.add.at(frame, bins, share if w is None else share * w[inside])
        return frame

    def gather(
        self,
        order: int,
        x: FloatArray,
        w: FloatArray | None,
        x_dot: FloatArray | None,
        frame: FloatArray,
        out: FloatArray | None,
    ) -> FloatArray:
        """Return `w_i sum_j h_j D prod_d k(x_id - j_d)`, `D` all derivatives of the order, or that along `x_dot`."""
        derivatives = np.zeros((len(x), len(derivative_orders(x.shape[1], order))))
        for inside, bins, factors in self._neighbours(order, x):
            derivatives[inside] += (factors * frame[bins]).T
        if w is not None:
            derivatives *= w[:, None]
        found = self.found(order, x, x_dot, out)
        if x_dot is None:
            found[...] = derivatives[:, 0] if order == 0 else derivatives
            return found
        matrices = np.empty((*x.shape, x.shape[1]))
        rows, columns = np.triu_indices(x.shape[1])
        matrices[:, rows, columns] = matrices[:, columns, rows] = derivatives
        return np.einsum("nde,ne->nd", matrices, x_dot, out=found)

    def _neighbours(
        self, order: int, points: FloatArray
    ) -> Iterator[tuple[npt.NDArray[np.bool_], tuple[npt.NDArray[np.intp], ...], FloatArray]]:
        """For each bin around the points: which points have it inside, its indices, and the products of the order.

        The products are (derivatives, points inside); bin `j` is the nearest one of `[j - 1/2, j + 1/2)`.
        """
        kernel = self._kernels[order]
        finite = np.asarray(np.isfinite(points).all(1))
        x = np.where(finite[:, None], points, 0)
        x = np.clip(x, -1e9, 1e9)
        whole = np.floor(x)
        if kernel.support % 2 == 1:
            whole += x - whole >= 0.5
        first = whole.astype(np.intp) - (kernel.support - 1) // 2
        # The factor of order n along axis d, kappa^(n)(x_d - j_d), is the same for all offsets along the other axes.
        factors = [[kernel.function(x - (first + s), n) for n in range(order + 1)] for s in range(kernel.support)]
        for offset in product(range(kernel.support), repeat=points.shape[1]):
            bins = first + np.array(offset)
            inside = finite & (bins >= 0).all(1) & (bins < self.shape).all(1)
            # The scale belongs to the whole product.
            products = [
                kernel.scale * np.prod([factors[offset[d]][n][inside, d] for d, n in enumerate(multi)], axis=0)
                for multi in derivative_orders(points.shape[1], order)
            ]
            yield inside, tuple(bins[inside].T), np.array(products)
