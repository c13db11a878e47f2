"""The Poisson equation on a panorama: matrices between neighbours, and a fast solution of the separable one."""

from __future__ import annotations

import cv2
import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.intensity.poisson_kernels import factorise, multiply, solve

_LEAST_COSINE = 0.02  # at a pole all longitudes meet: neighbours in a row would be tied without bound
_SHIFT = 1e-6  # the equation leaves a constant free; this chooses zero


class Stencil:
    """A symmetric matrix on the pixels of an image that ties each to its eight neighbours; columns form a circle.

    Parameters
    ----------
    elements : (rows - 1, columns, 10) float64
        For each cell between four pixels the upper triangle of the matrix of its corners: that at the upper left, the
        one right of it, the one below, and the one at the lower right. The last cell of a row ends at the first column.
    """

    def __init__(self, elements: FloatArray) -> None:
        rows, columns = elements.shape[0] + 1, elements.shape[1]
        self.shape = rows, columns
        e = np.zeros((10, rows + 1, columns))  # with no cells above the first row and below the last
        e[:, 1:-1] = np.moveaxis(elements, -1, 0)
        here, above, left = e[:, 1:], e[:, :-1], np.roll(e, 1, axis=2)
        self._centre = here[0] + left[4, 1:] + above[7] + left[9, :-1]
        self._right = here[1] + above[8]
        self._below = (here[2] + left[6, 1:])[:-1]
        self._below_right, self._below_left = here[3, :-1], left[5, 1:-1]

    def add_ties(self, across: FloatArray, down: FloatArray, *, wraps: bool) -> None:
        """Add `sum a (M_i - M_j)^2` over neighbours in a row, by its factor (rows,), and in a column (rows - 1,)."""
        ties = np.repeat(across[:, None], self.shape[1], axis=1)
        if not wraps:
            ties[:, -1] = 0
        self._right -= ties
        self._below -= down[:, None]
        self._centre += ties + np.roll(ties, 1, axis=1)
        self._centre[:-1] += down[:, None]
        self._centre[1:] += down[:, None]

    def gather(self, vectors: FloatArray) -> FloatArray:
        """Return the sum (rows, columns) of vectors (rows - 1, columns, 4) of the cells' corners."""
        image = np.zeros(self.shape)
        image[:-1] = vectors[..., 0] + np.roll(vectors[..., 1], 1, axis=1)
        image[1:] += vectors[..., 2] + np.roll(vectors[..., 3], 1, axis=1)
        return image

    def __matmul__(self, image: FloatArray) -> FloatArray:
        """Return the product with an image (rows, columns)."""
        out = np.empty(self.shape)
        multiply(self._centre, self._right, self._below, self._below_right, self._below_left, image, out)
        return out


def smoothness(cosines: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
    """Return the factors across (rows,) and down (rows - 1,) of `weight * integral |grad M|^2` over the sphere.

    With the cosine of a row's latitude, `dM/d longitude` counts by one over it, and `dM/d latitude` by it.
    """
    bounded = np.maximum(cosines, _LEAST_COSINE)
    return weight / bounded, weight * (bounded[1:] + bounded[:-1]) / 2


def good_columns(at_least: int, at_most: int) -> int:
    """Return a number of columns that a cosine transform is fast for: even, and of small factors."""
    return min(2 * cv2.getOptimalDFTSize(-(-at_least // 2)), at_most)


class FastPoisson:
    """Solves the Poisson equation directly where its factors depend on the row only.

    A cosine transform along the rows leaves a tridiagonal system for each frequency `k`, whose diagonal has
    `across (2 - 2 cos(pi k / columns))`. Columns do not wrap.

    Parameters
    ----------
    across : (rows,) float64
        Ties pixels of a row.
    down : (rows - 1,) float64
        Ties pixels of a column.
    columns : int
        Of the image; `good_columns` are fast.
    """

    def __init__(self, across: FloatArray, down: FloatArray, columns: int) -> None:
        self._pivots = across[:, None] * (2 - 2 * np.cos(np.pi * np.arange(columns) / columns)) + _SHIFT
        self._pivots[:-1] += down[:, None]
        self._pivots[1:] += down[:, None]
        self._factors = np.empty((len(down), columns))
        factorise(self._pivots, down, self._factors)

    def __call__(self, image: FloatArray) -> FloatArray:
        """Return the solution for a right-hand side (rows, columns)."""
        waves = cv2.dct(image, flags=cv2.DCT_ROWS)
        solve(self._pivots, self._factors, waves)
        return np.asarray(cv2.idct(waves, flags=cv2.DCT_ROWS), np.float64)


def solve_poisson(
    stencil: Stencil, rhs: FloatArray, fast: FastPoisson, tolerance: float, most_steps: int
) -> FloatArray:
    """Return the image whose product with the stencil is `rhs` (rows, columns), by conjugate gradients.

    `fast` is the preconditioner: it knows the long waves, for which conjugate gradients alone would take long.
    """
    found, residual, direction = np.zeros_like(rhs), rhs.copy(), np.zeros_like(rhs)
    before, least = np.inf, tolerance * float(np.linalg.norm(rhs))
    for _ in range(most_steps):
        if np.linalg.norm(residual) <= least:
            break
        conditioned = fast(residual)
        product = float(np.vdot(residual, conditioned))
        direction = conditioned + product / before * direction
        turned = stencil @ direction
        step = product / np.vdot(direction, turned)
        found += step * direction
        residual -= step * turned
        before = product
    return found
