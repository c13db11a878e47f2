"""Maximise a contrast by a quasi-Newton method that starts from a model of its curvature."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


# The model leaves out what the moving events do to the image that they are compared with, and is too large by that.
_MODEL_SCALE = 0.7


class Status(Enum):
    """How an optimisation ended."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"
    STALLED = "stalled"


class Objective(Protocol):
    """What is maximised."""

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient."""


@dataclass(frozen=True)
class Solution:
    """The parameters that were found, their score, and how."""

    value: FloatArray
    score: float
    status: Status
    evaluations: int


def maximise(
    objective: Objective,
    start: FloatArray,
    curvature: FloatArray,
    *,
    max_step: float,
    tolerance: float,
    max_evaluations: int,
) -> Solution:
    """Follow `x <- x + B^-1 g`, with `B` a damped BFGS estimate of minus the Hessian that starts from a model of it.

    Parameters
    ----------
    curvature : (P, P), model of the Hessian at the start (negative about a maximum)
    max_step : no component of a step is larger
    tolerance : converged where no component of the next step is larger
    max_evaluations : of value and gradient
    """
    B = _positive(-_MODEL_SCALE * curvature)
    x = start.copy()
    score, gradient = objective.value_and_gradient(x)
    evaluations = 1
    while True:
        step = np.asarray(np.linalg.solve(B, gradient), np.float64)
        largest = float(np.abs(step).max())
        if largest < tolerance:
            return Solution(x, score, Status.CONVERGED, evaluations)
        if evaluations >= max_evaluations:
            return Solution(x, score, Status.ITERATION_LIMIT, evaluations)
        if largest > max_step:
            step *= max_step / largest
        slope = float(gradient @ step)
        trial_score, trial_gradient = objective.value_and_gradient(x + step)
        evaluations += 1
        B = _updated(B, step, gradient - trial_gradient)
        # The synthesized gradient is smoother than the score itself: a step is as good if it has flattened the slope.
        if trial_score > score or abs(float(trial_gradient @ step)) < 0.5 * slope:
            x, score, gradient = x + step, trial_score, trial_gradient
        elif largest < 4 * tolerance:
            return Solution(x, score, Status.STALLED, evaluations)


def _positive(matrix: FloatArray) -> FloatArray:
    """Return the symmetric matrix with its eigenvalues raised to a thousandth of the largest at least."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    floor = max(1e-3 * float(values[-1]), np.finfo(float).tiny)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def _updated(B: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """Return the BFGS update of `B` for `B s = y`, damped (Powell) so that it stays positive."""
    Bs = B @ s
    sBs = float(s @ Bs)
    sy = float(s @ y)
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        y = theta * y + (1 - theta) * Bs
        sy = float(s @ y)
    return B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy
