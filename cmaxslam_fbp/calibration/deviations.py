"""How well the events tell the parameters of a lens: standard deviations from the curvature of the contrast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.lens_objective import LensObjective

_STEPS_PX = (
    0.5,
    1.0,
    1.5,
)  # of differences of gradients: by how much events move on the map; one alone shows single votes
_ITERATIONS = 25
_CONVERGED = 0.02  # of the residual


def lens_covariance(objective: LensObjective) -> FloatArray:
    """Return the covariance (P, P) of the lens parameters, the motion free: the block of the inverse Hessian.

    Columns `H x = e_j` are solved by conjugate gradients, in whitened parameters, with products `H v` from
    differences of the gradient at either side, the mean over some steps: `P` times some dozens of evaluations, however
    many control rotations there are.
    """
    count, lenses = objective.parameter_count, objective.lens_count
    origin = np.zeros(count)

    def product(v: FloatArray) -> FloatArray:
        steps = [objective.whitened_length(step) / max(float(np.linalg.norm(v)), 1e-300) for step in _STEPS_PX]
        slopes = [(objective(origin + h * v)[1] - objective(origin - h * v)[1]) / (2 * h) for h in steps]
        return np.asarray(np.mean(slopes, axis=0))

    columns = np.stack([conjugate_gradients(product, np.eye(count)[count - lenses + j]) for j in range(lenses)], axis=1)
    block = columns[count - lenses :]
    white = objective.lens_whitening
    return np.asarray(white @ ((block + block.T) / 2) @ white.T)


def conjugate_gradients(product: Callable[[FloatArray], FloatArray], right: FloatArray) -> FloatArray:
    """Return the solution `x` of `H x = b`; it ends where a direction has no positive curvature."""
    x, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), float(residual @ residual)
    for _ in range(_ITERATIONS):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        share = square / curvature
        x += share * direction
        residual -= share * image
        smaller = float(residual @ residual)
        if smaller < _CONVERGED**2 * float(right @ right):
            break
        direction = residual + smaller / square * direction
        square = smaller
    return x
