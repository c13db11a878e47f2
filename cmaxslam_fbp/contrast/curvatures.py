"""Second derivatives of an image's inner product with respect to each point that was binned into it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.fbp.bins_numba import lane_table
from cmaxslam_fbp.fbp.numba_backend import make_bounds
from cmaxslam_fbp.fbp.pairs import derivative_kernel
from cmaxslam_fbp.fbp.tables import kernel_table


@cache
def _loop(support: int, degree: int) -> Callable[..., None]:
    from cmaxslam_fbp.contrast.curvature_kernels import make_gather_curvatures

    loop: Callable[..., None] = make_gather_curvatures(support, degree)
    return loop


class PointCurvatures:
    """`C_i = w_i sum_j hbar_j d2/dx_i2 prod_d kappa(x_id - j_d)` in one pass over the points.

    `Binning.hvp` gives products of these matrices with one direction each; a Hessian over several parameters needs them
    whole.
    """

    def __init__(
        self, shape: tuple[int, int], kernel: str, reconstruction: str | None, surrogate: str | None = None
    ) -> None:
        kappa = derivative_kernel(kernel, None if surrogate else reconstruction, surrogate)
        table = kernel_table(kappa, 2, is_single_precision=True)
        self._shape = shape
        self._coefficients = lane_table(table.coefficients, np.float32)
        self._constants = table.support, table.degree
        bounds = make_bounds(shape, table.support, np.float32)
        self._bounds: tuple[Any, ...] = bounds.inner, bounds.outer, bounds.limits

    def gather(
        self, points: SingleArray, weights: SingleArray | None, image_bar: SingleArray, out: SingleArray
    ) -> None:
        """Write the symmetric `C_i` as row-row, row-column, column-column: (N, 3)."""
        if image_bar.shape != self._shape or not image_bar.flags.c_contiguous:
            raise ValueError(f"the adjoint image must be C-contiguous of shape {self._shape}, not {image_bar.shape}")
        loop = _loop(*self._constants)
        loop(points, weights, self._coefficients, image_bar.reshape(-1), out, self._shape[1], *self._bounds)
