"""The normal equations of motion and map together, solved through the Schur complement of the map."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg, splu

from cmaxslam_fbp.arrays import FloatArray, IntArray

_SAMPLE = 8  # one of so many pairs makes the preconditioner


class JointEquations:
    """Least squares `sum w (e + J x + d.y_j)^2 + a sum |g + y|^2` over turns `x` and changes `y` of a gradient map `g`.

    Each residual `e` depends on one pixel `j` of the map, so that the map's block `A22` of the normal equations
    `[[A11, A12], [A12^T, A22]] [x, y] = [b1, b2]` consists of blocks 2 x 2. The turns solve
    `(A11 - A12 A22^-1 A12^T) x = b1 - A12 A22^-1 b2`, by conjugate gradients: only products with vectors are
    needed, those of the sparse `J` and of the pairs' own `d`, and `A12` is never made.

    Parameters
    ----------
    jacobian : (N, 3 K) sparse float64, or None where the map alone is solved for
        `J`.
    moved : (N, 2) float64
        `d`.
    pixel : (N,) int64
        `j`, from 0 to P - 1.
    weights, residual : (N,) float64
        `w` and `e`.
    gradient : (P, 2) float64
        `g`.
    prior : float
        `a`.
    """

    def __init__(
        self,
        jacobian: sparse.csr_array | None,
        moved: FloatArray,
        pixel: IntArray,
        weights: FloatArray,
        residual: FloatArray,
        gradient: FloatArray,
        prior: float,
    ) -> None:
        count, pixels = len(pixel), len(gradient)
        self._motion = sparse.csr_array((count, 0)) if jacobian is None else jacobian
        self._weights = weights
        places = (2 * pixel[:, None] + np.arange(2)).ravel()
        self._map = sparse.csr_array((moved.ravel(), places, np.arange(0, 2 * count + 1, 2)), (count, 2 * pixels))
        products = weights[:, None] * moved[:, [0, 0, 1]] * moved[:, [0, 1, 1]]
        self._a22: FloatArray = np.stack(
            [np.bincount(pixel, product, pixels).astype(np.float64) for product in products.T]
        )
        self._a22[[0, 2]] += prior
        self._b1 = -(self._motion.T @ (weights * residual))
        self._b2 = -(self._map.T @ (weights * residual)) - prior * gradient.ravel()

    def solve(self, damping: float, tolerance: float = 1e-2) -> tuple[FloatArray, FloatArray]:
        """Return the turns (K, 3) and the map's changes (P, 2); both diagonals are raised by a share `damping`."""
        sample = self._motion[::_SAMPLE]
        a11 = (sample.T @ (sample.multiply(_SAMPLE * self._weights[::_SAMPLE, None]))).tocsc()
        diagonal = a11.diagonal()
        # What hardly any pair speaks of, such as the last control rotation, is held as the mean one is.
        raised = damping * (diagonal + diagonal.mean())

        def product(turns: FloatArray) -> FloatArray:
            motion = self._weights * (self._motion @ turns)
            answer = self._weights * (self._map @ self._solve_map(self._map.T @ motion, damping))
            return np.asarray(self._motion.T @ (motion - answer) + raised * turns)

        rhs = self._b1 - self._motion.T @ (self._weights * (self._map @ self._solve_map(self._b2, damping)))
        square = len(rhs), len(rhs)
        turns, _ = cg(
            LinearOperator(square, product, dtype=np.float64),
            rhs,
            rtol=tolerance,
            maxiter=10 * len(rhs),
            M=LinearOperator(square, splu(a11 + sparse.diags_array(raised, format="csc")).solve, dtype=np.float64),
        )
        return turns.reshape(-1, 3), self.map_changes(damping, turns)

    def map_changes(self, damping: float, turns: FloatArray | None = None) -> FloatArray:
        """Return the changes (P, 2) of the map that go with turns (3 K,), or with none."""
        motion = 0.0 if turns is None else self._map.T @ (self._weights * (self._motion @ turns))
        return self._solve_map(self._b2 - motion, damping).reshape(-1, 2)

    def _solve_map(self, vector: FloatArray, damping: float) -> FloatArray:
        """Return `A22^-1 v` for a vector (2 P,)."""
        a, b, c = self._a22
        a, c = a * (1 + damping), c * (1 + damping)
        u, v = vector.reshape(-1, 2).T
        return np.asarray(np.stack([c * u - b * v, a * v - b * u], axis=-1) / (a * c - b * b)[:, None]).ravel()
