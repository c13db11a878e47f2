"""SciPy's L-BFGS-B: the paper's first optimiser."""

from __future__ import annotations

from dataclasses import dataclass

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solution import Solution
from cmaxslam_fbp.contrast.solvers.scipy_solution import minimise_negative


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
        return minimise_negative(objective, start, "L-BFGS-B", options, with_hessian=False)
