"""Newton's method on the synthesized gradient: the default, and the fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solvers import newton_kernels as kernels
from cmaxslam_fbp.contrast.solvers.solver import Solution, Status

_MIN_EIGENVALUE = 1e-3  # of the model, as a part of the largest: flatter directions count as that steep
LATTICE_BINS = 2.0**-11  # a lattice that is fine enough for any tolerance here
_START_LATTICE = 256  # steps of the lattice
_MODEL_LATTICE = 2.0**-8  # as a part of the model's largest entry
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

    With a lattice all parameters are rounded to it, and the start and the model more coarsely. On a staircase the last
    bit of a parameter can move an event to the next bin, and the search to another end: sums that another device
    takes in another order would show in the result. On a lattice much finer than the tolerance they do not.

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
    lattice_bins : float
        Step of the lattice, in units; zero for none.
    """

    tolerance_bins: float = 0.01
    max_step_bins: float = 2.0
    short_step_bins: float = 0.5
    max_evaluations: int = 25
    lattice_bins: float = 0.0

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        evaluations_before, hessians_before = objective.evaluations, objective.hessians
        lattice = self.lattice_bins * unit
        x = _rounded(start, _START_LATTICE * lattice)
        score, gradient = objective.value_and_gradient(x)
        model = -np.asarray(objective.hessian(x) if hessian is None else hessian, np.float64)
        if lattice:
            model = _rounded(model, _MODEL_LATTICE * float(np.abs(model).max()))
        status = Status.ITERATION_LIMIT
        radius = self.max_step_bins * unit
        last_step = np.zeros_like(x)
        while True:
            model, inverse, is_usable = kernels.make_positive(model, _MIN_EIGENVALUE)
            if not is_usable or not np.isfinite(score + gradient.sum()):
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
            next_x = _rounded(x + step, lattice)
            step = next_x - x
            there, gradient_there = objective.value_and_gradient(next_x)
            if not np.isfinite(there + gradient_there.sum()):
                radius = _SHRINK * length
                continue
            is_better = there > score
            if not is_better and length < self.short_step_bins * unit:
                is_better = bool(gradient_there @ inverse @ gradient_there < gradient @ inverse @ gradient)
            model = kernels.updated(model, step, gradient - gradient_there, _DAMPING)
            if is_better:
                if length == radius and gradient_there @ step > 0:
                    radius *= _GROW
                x, score, gradient = next_x, there, gradient_there
            else:
                radius = _SHRINK * length
        return Solution(
            parameters=_rounded(x + last_step, lattice),
            evaluated=x,
            score=score,
            status=status,
            evaluations=objective.evaluations - evaluations_before,
            hessians=objective.hessians - hessians_before,
            gradient=gradient,
            hessian=-model,
        )


def _rounded(values: FloatArray, step: float) -> FloatArray:
    """Return values on the lattice with a step; as they are where it is zero, or nothing to count in."""
    values = np.array(values, np.float64)
    return np.round(values / step) * step if 0 < step < np.inf else values
