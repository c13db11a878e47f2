"""How well the events tell the parameters of a lens: their covariance from the curvature of the contrast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.lens_objective import LensObjective

_STEP_PX = 1.0  # of differences of gradients: by how much events move on the map, whatever the direction
_BLOCKS = 5
_TINY = 1e-30  # a curvature that is none


def lens_covariance(objective: LensObjective) -> FloatArray:
    """Return the covariance (P, P) of the lens parameters, the motion free: the block of the inverse Hessian.

    Products `H v` come from differences of the gradient at either side, in whitened parameters.
    """
    count, lenses = objective.parameter_count, objective.lens_count

    def product(v: FloatArray) -> FloatArray:
        h = objective.step_of(v, _STEP_PX)
        return np.asarray((objective(h * v)[1] - objective(-h * v)[1]) / (2 * h))

    white = objective.lens_whitening
    return np.asarray(white @ inverse_block(product, np.eye(count)[:, count - lenses :]) @ white.T)


def inverse_block(product: Callable[[FloatArray], FloatArray], units: FloatArray, blocks: int = _BLOCKS) -> FloatArray:
    """Return `E^T H^-1 E` (P, P) for orthonormal columns `E` (N, P), from some products with `H`.

    `H` is restricted to the space that `E`, `H E`, `H^2 E`, ... span, block by block: a few, where its eigenvalues lie
    close together. It ends before a block in which `H` is not positive. In the first one, curvatures that are less than
    the error of the products count as that error: by as much they fail to be symmetric.
    """
    basis, images = np.empty((len(units), 0)), np.empty((len(units), 0))
    new, found = units, None
    for _ in range(blocks):
        basis = np.hstack([basis, new])
        images = np.hstack([images, np.stack([product(column) for column in new.T], axis=1)])
        inner = basis.T @ images
        error, inner = np.abs(inner - inner.T).max() / 2, (inner + inner.T) / 2
        values, vectors = np.linalg.eigh(inner)
        if found is not None and values[0] <= 0:
            break
        if found is None:
            inner = vectors * np.maximum(values, max(error, _TINY)) @ vectors.T
        solved = np.linalg.solve(inner, basis.T @ units)
        found = units.T @ basis @ solved
        new = units - images @ solved
        for _ in range(2):  # once more against rounding
            new = np.linalg.qr(new - basis @ (basis.T @ new))[0]
    assert found is not None
    return (found + found.T) / 2
