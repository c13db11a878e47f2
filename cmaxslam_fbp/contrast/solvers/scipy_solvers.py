"""SciPy's L-BFGS-B and trust-region Newton conjugate gradient: the paper's optimisers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solvers.solver import Solution, Status


@dataclass(frozen=True)
class Lbfgsb:
    """L-BFGS-B with SciPy's own stopping rules.

    Attributes
    ----------
    gradient_tolerance : float
        Largest entry of the gradient.
    relative_change : float
        Of the score between two iterations.
    max_iterations : int
        Of line searches.
    """

    gradient_tolerance: float = 1e-5
    relative_change: float = 2.220446049250313e-9
    max_iterations: int = 200

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        options = {"gtol": self.gradient_tolerance, "ftol": self.relative_change, "maxiter": self.max_iterations}
        return _maximise(objective, start, "L-BFGS-B", options, with_hessian=False)


@dataclass(frozen=True)
class TrustNcg:
    """`trust-ncg` with the Hessian at every step, and SciPy's own stopping rule.

    Attributes
    ----------
    gradient_tolerance : float
        Norm of the gradient.
    max_iterations : int
        Of steps.
    """

    gradient_tolerance: float = 1e-4
    max_iterations: int = 200

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        options = {"gtol": self.gradient_tolerance, "maxiter": self.max_iterations}
        return _maximise(objective, start, "trust-ncg", options, with_hessian=True)


def _maximise(
    objective: Objective, start: FloatArray, method: str, options: dict[str, float], *, with_hessian: bool
) -> Solution:
    """Run `scipy.optimize.minimize` on minus the score: SciPy's optimisers minimise."""
    from scipy.optimize import minimize

    evaluations, hessians = objective.evaluations, objective.hessians
    start = np.array(start, np.float64)

    def negative(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = objective.value_and_gradient(theta)
        return -value, -slope

    hess = (lambda theta: -objective.hessian(theta)) if with_hessian else None
    status, found = Status.STALLED, start
    try:
        # SciPy says how it ended by its status and, as long as no `disp` is set, by no warning; what NumPy would say of
        # a score that is not finite is silenced for this thread alone, which filters of warnings could not be.
        with np.errstate(all="ignore"):
            result = minimize(negative, start, jac=True, hess=hess, method=method, options=options)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        score, gradient = objective.value_and_gradient(start)
    else:
        if np.isfinite(result.x).all() and np.isfinite(result.fun):
            found, score, gradient = np.asarray(result.x, np.float64), -float(result.fun), -np.asarray(result.jac)
            if result.success:
                status = Status.CONVERGED
            elif result.status == 1:
                status = Status.ITERATION_LIMIT
        else:
            status = Status.DEGENERATE
            score, gradient = objective.value_and_gradient(start)
    return Solution(
        parameters=found,
        evaluated=found,
        score=score,
        status=status,
        evaluations=objective.evaluations - evaluations,
        hessians=objective.hessians - hessians,
        gradient=np.asarray(gradient, np.float64),
    )
