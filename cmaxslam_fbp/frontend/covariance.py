"""How uncertain a velocity is that maximises a score."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.solvers.newton_kernels import make_positive

# Error of a constant velocity, as a part of the change of the true one over the packet; on simulated recordings it is
# 0.04 to 0.06 wherever that change dominates.
_CHANGE_ERROR = 0.05
_FLAT = 1e-6  # directions this much less steep than the steepest one are not seen at all


def velocity_covariance(hessian: FloatArray, gradient_scatter: FloatArray, largest: float) -> FloatArray:
    """`H^-1 G H^-1` (P, P): the covariance of a maximum whose gradient has the covariance `G`.

    The scatter `G = sum_i g_i g_i^T` of the events' parts of the gradient is its covariance if the events came
    independently of each other. Directions in which the score is flat get the variance `largest^2`, which is also the
    most that any direction gets.
    """
    _, inverse, is_usable = make_positive(-hessian, _FLAT)
    if not is_usable:
        return np.eye(len(hessian)) * largest**2
    covariance: FloatArray = inverse @ gradient_scatter @ inverse
    covariance = 0.5 * (covariance + covariance.T)
    if not is_nearly_flat(hessian, _FLAT) and float(np.trace(covariance)) < largest**2:
        return covariance
    variances, axes = np.linalg.eigh(covariance)
    variances = np.clip(variances, 0.0, largest**2)
    if is_nearly_flat(hessian, _FLAT):
        variances[-1] = largest**2
    return (axes * variances) @ axes.T


def is_nearly_flat(hessian: FloatArray, ratio: float = 2e-3) -> bool:
    """Return whether one direction is less steep than another by that ratio: 500 times by default."""
    # The norm of the inverse is near one over the least steepness; make_positive has raised that to the ratio.
    _, inverse, is_usable = make_positive(-hessian, 0.1 * ratio)
    return not is_usable or float(np.linalg.norm(inverse) * np.linalg.norm(hessian)) >= 1 / ratio


def change_variance(change: float, parameter_count: int) -> float:
    """Return the variance per parameter that a change of the velocity over the packet adds: it is taken as constant."""
    return (_CHANGE_ERROR * change) ** 2 / parameter_count
