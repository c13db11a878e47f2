"""How much a map stands out from its own surroundings: a contrast that neither area nor overlap of views changes."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.contrast.blur import Boundary, GaussianBlur

_WIDER = 3.0  # of the surroundings: the sigma of their blur over that of the map's


class Relief:
    """`S(h) = sum_j u_j^2 / (v_j + c)`, with the map `u = B h` and its surroundings `v = W u`, a wider blur.

    Up to constants that is the chi-square of the map against its surroundings, `sum (u - v)^2 / v`. The sum of squares
    `sum u^2` grows as well where views only lie more on each other, or where all is drawn together; here such changes
    cancel in the ratio. The constant `c` is what a single vote adds to `u` at its own place on average, `sum taps^2`:
    with it, votes that are spread at random score one each, however dense they lie.

    Parameters
    ----------
    shape : of the map
    sigma_px : of the map's own blur
    columns : how the map continues to the left and right
    """

    def __init__(self, shape: tuple[int, int], sigma_px: float, columns: Boundary) -> None:
        self._blur = GaussianBlur(shape, sigma_px, np.float32, rows="zero", columns=columns)
        self._wide = GaussianBlur(shape, _WIDER * sigma_px, np.float32, rows="zero", columns=columns)
        self._own = 1 / (4 * np.pi * sigma_px**2)
        self.map: SingleArray = np.empty(shape, np.float32)
        self._ratio: SingleArray = np.empty(shape, np.float32)

    def value(self, image: SingleArray) -> float:
        """Return `S` of an image of votes, summed in double precision: its ridges are flatter than float32 resolves."""
        self._blur.forward(image, out=self.map)
        self._wide.forward(self.map, out=self._ratio)
        self._ratio += np.float32(self._own)
        np.divide(self.map, self._ratio, out=self._ratio)  # the ratio q
        return float(np.einsum("ij,ij->", self.map, self._ratio, dtype=np.float64, casting="same_kind"))

    def gradient(self) -> SingleArray:
        """Return `dS/dh = B^T (2 q - W^T q^2)`, `q = u / (v + c)`, of the image whose value was asked for last."""
        by_map = self._wide.adjoint(np.square(self._ratio))
        np.subtract(2 * self._ratio, by_map, out=by_map)
        return self._blur.adjoint(by_map, out=by_map)

    def shares(self) -> SingleArray:
        """Return `B^T q`, of the same image: what a vote adds to `S = sum_j h_j (B^T q)_j` by the place where it is."""
        return self._blur.adjoint(self._ratio)
