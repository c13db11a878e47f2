"""SciPy's trust-region Newton conjugate gradient: the paper's second optimiser."""

from __future__ import annotations

from dataclasses import dataclass

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solution import Solution
from cmaxslam_fbp.contrast.solvers.scipy_solution import minimise_negative


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
        return minimise_negative(objective, start, "trust-ncg", options, with_hessian=True)
