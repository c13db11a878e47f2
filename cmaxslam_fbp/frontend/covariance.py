"""How uncertain a velocity is that maximises a score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Error of a constant velocity, as a part of the change of the true one over the packet; on simulated recordings it is
# 0.04 to 0.06 wherever that change dominates.
_CHANGE_ERROR = 0.05


def velocity_covariance(hessian: FloatArray, gradient_scatter: FloatArray, largest: float) -> FloatArray:
    """`H^-1 G H^-1` (3, 3): the covariance of a maximum whose gradient has the covariance `G`.

    The scatter `G = sum_i g_i g_i^T` of the events' parts of the gradient is its covariance if the events came
    independently of each other. Directions in which the score is flat get the variance `largest^2`, which is also the
    most that any direction gets.
    """
    values, vectors = np.linalg.eigh(-hessian)
    steepness = np.abs(values)
    floor = 1e-9 * float(steepness.max())
    if not np.isfinite(steepness).all() or floor == 0:
        return np.eye(len(hessian)) * largest**2
    inverse = vectors / np.maximum(steepness, floor)
    half = inverse.T @ gradient_scatter @ inverse
    covariance = vectors @ half @ vectors.T
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    flat = bool((steepness <= 1e-6 * steepness.max()).any())
    variances = np.clip(variances, 0.0, largest**2)
    if flat:
        variances[-1] = largest**2
    return (axes * variances) @ axes.T


def is_nearly_flat(hessian: FloatArray) -> bool:
    """Return whether one direction is 500 times less steep than another."""
    steepness = np.abs(np.linalg.eigvalsh(hessian))
    return bool(steepness.min() <= 2e-3 * steepness.max())


def change_variance(change: float) -> float:
    """Return the variance per axis that a change of the velocity over the packet adds: it is taken as constant."""
    return (_CHANGE_ERROR * change) ** 2 / 3
