"""Newton's method on the synthesized gradient: the default, and the fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solution import Solution, Status

FloatArray = npt.NDArray[np.float64]

_MIN_EIGENVALUE = 1e-3  # of the model, as a part of the largest: flatter directions count as that steep
_SHRINK, _GROW = 0.3, 2.0
_DAMPING = 0.1  # least part of the model's curvature that an update may leave along a step


@dataclass(frozen=True)
class Newton:
    """Steps to the root of the gradient with a model of the Hessian that is corrected by every gradient.

    The score of a histogram is a staircase: over small steps its value is noise, and only the synthesized gradient can
    be relied on. So the method looks for the root of the gradient `g`. The model `-A` of the Hessian is the one given,
    or the synthesized Hessian at the start, with the sign of its positive eigenvalues turned; each gradient
    then corrects it by a damped BFGS update. A step `A^-1 g` is cut to the trust radius. It is taken if the score
    has grown, or, for a step so short that the score cannot tell, if the next one is shorter; else the radius shrinks.

    A step below the tolerance ends the search. It is still added, without an evaluation: what remains after it is a
    small part of it.

    Attributes
    ----------
    tolerance_bins : float
        Length of the last step, in units (see `Solver.maximise`).
    max_step_bins : float
        Largest step, in units.
    short_step_bins : float
        Steps below this, in units, are judged by the gradient alone.
    max_evaluations : int
        Of the score and its gradient.
    """

    tolerance_bins: float = 0.01
    max_step_bins: float = 2.0
    short_step_bins: float = 0.5
    max_evaluations: int = 25

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        evaluations_before, hessians_before = objective.evaluations, objective.hessians
        x = np.array(start, np.float64)
        score, gradient = objective.value_and_gradient(x)
        model = -(objective.hessian(x) if hessian is None else hessian)
        status = Status.ITERATION_LIMIT
        radius = self.max_step_bins * unit
        last_step = np.zeros_like(x)
        while True:
            model, inverse = _positive(model)
            if inverse is None or not np.isfinite(score + gradient.sum()):
                status = Status.DEGENERATE
                break
            step = inverse @ gradient
            length = float(np.sqrt(step @ step))
            if length < self.tolerance_bins * unit:
                last_step = step
                status = Status.CONVERGED
                break
            if radius < self.tolerance_bins * unit:
                status = Status.STALLED
                break
            if objective.evaluations - evaluations_before >= self.max_evaluations:
                break
            if length > radius:
                step *= radius / length
                length = radius
            there, gradient_there = objective.value_and_gradient(x + step)
            if not np.isfinite(there + gradient_there.sum()):
                radius = _SHRINK * length
                continue
            is_better = there > score
            if not is_better and length < self.short_step_bins * unit:
                is_better = bool(gradient_there @ inverse @ gradient_there < gradient @ inverse @ gradient)
            model = _updated(model, step, gradient - gradient_there)
            if is_better:
                if length == radius and gradient_there @ step > 0:
                    radius *= _GROW
                x, score, gradient = x + step, there, gradient_there
            else:
                radius = _SHRINK * length
        return Solution(
            value=x + last_step,
            evaluated=x,
            score=score,
            status=status,
            evaluations=objective.evaluations - evaluations_before,
            hessians=objective.hessians - hessians_before,
            gradient=gradient,
            hessian=-model,
        )


def _positive(model: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the model with all eigenvalues positive, and its inverse; None where they are all zero, or not finite."""
    if not np.isfinite(model).all():
        return np.zeros_like(model), None
    values, vectors = np.linalg.eigh(model)
    steepest = float(np.abs(values).max())
    if steepest == 0:
        return model, None
    if values[0] < _MIN_EIGENVALUE * steepest:
        values = np.maximum(np.abs(values), _MIN_EIGENVALUE * steepest)
        model = (vectors * values) @ vectors.T
    return model, (vectors / values) @ vectors.T


def _updated(model: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the BFGS update of the model `A` after a step along which minus the gradient changed by `change`.

    Powell's damping keeps it positive: where the curvature along the step is less than a part of the model's,
    that part stands for it.
    """
    along = model @ step
    expected, found = float(step @ along), float(step @ change)
    if found < _DAMPING * expected:
        mix = (1 - _DAMPING) * expected / (expected - found)
        change = mix * change + (1 - mix) * along
        found = float(step @ change)
    return model - np.outer(along, along) / expected + np.outer(change, change) / found
