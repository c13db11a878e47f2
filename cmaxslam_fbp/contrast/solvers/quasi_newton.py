"""A quasi-Newton method for many parameters, which starts from a rough model of the curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solvers import newton_kernels as kernels
from cmaxslam_fbp.contrast.solvers.solver import Solution, Status

_MIN_EIGENVALUE = 1e-3  # of the model, as a part of the largest: flatter directions count as that steep
_DAMPING = 0.2  # least part of the model's curvature that an update may leave along a step
_FLATTER = 0.5  # part of the slope along a step that may be left behind it
_LAST_STEPS = 4  # tolerances: the longest step that ends the search where it is not taken


@dataclass(frozen=True)
class QuasiNewton:
    """Follows `x <- x + B^-1 g`, with a damped BFGS estimate `B` of minus the Hessian.

    `B` starts from a model of the second derivatives, which may be rough: the one given, or the objective's own, with
    the sign of its positive eigenvalues turned. A step is taken if the score has grown, or if it has flattened the
    slope: the synthesized gradient is smoother than the score itself.

    A step below the tolerance ends the search. It is still added, without an evaluation: what remains after it is a
    small part of it.

    Attributes
    ----------
    tolerance_bins : float
        Converged where no component of the next step is larger, in units (see `Solver.maximise`).
    max_step_bins : float
        Largest component of a step, in units.
    model_scale : float
        Factor of the model: below one for a model that is too steep.
    max_evaluations : int
        Of the score and its gradient.
    """

    tolerance_bins: float = 0.02
    max_step_bins: float = 5.0
    model_scale: float = 1.0
    max_evaluations: int = 30

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        evaluations_before, hessians_before = objective.evaluations, objective.hessians
        x = np.array(start, np.float64)
        score, gradient = objective.value_and_gradient(x)
        model = np.asarray(objective.hessian(x) if hessian is None else hessian, np.float64)
        B, _, is_usable = kernels.make_positive(-self.model_scale * model, _MIN_EIGENVALUE)
        is_usable = is_usable and np.isfinite(score + gradient.sum())
        status = Status.ITERATION_LIMIT if is_usable else Status.DEGENERATE
        last_step = np.zeros_like(x)
        while is_usable:
            try:
                step = np.asarray(np.linalg.solve(B, gradient), np.float64)
            except np.linalg.LinAlgError:  # an update has lost a direction
                status = Status.STALLED
                break
            largest = float(np.abs(step).max())
            if largest < self.tolerance_bins * unit:
                last_step, status = step, Status.CONVERGED
                break
            if objective.evaluations - evaluations_before >= self.max_evaluations:
                break
            step *= min(1.0, self.max_step_bins * unit / largest)
            there, gradient_there = objective.value_and_gradient(x + step)
            if not np.isfinite(there + gradient_there.sum()):
                status = Status.STALLED
                break
            B = kernels.updated(B, step, gradient - gradient_there, _DAMPING)
            if there > score or abs(float(gradient_there @ step)) < _FLATTER * float(gradient @ step):
                x, score, gradient = x + step, there, gradient_there
            elif largest < _LAST_STEPS * self.tolerance_bins * unit:
                status = Status.STALLED
                break
        return Solution(
            parameters=x + last_step,
            evaluated=x,
            score=score,
            status=status,
            evaluations=objective.evaluations - evaluations_before,
            hessians=objective.hessians - hessians_before,
            gradient=gradient,
            hessian=-B,
        )
