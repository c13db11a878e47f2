"""What every optimiser offers, and what it returns: failure is data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective


class Status(str, Enum):
    """How an optimisation ended."""

    CONVERGED = "converged"
    """The last step, the gradient or the change of the score fell below its tolerance."""
    ITERATION_LIMIT = "iteration_limit"
    """The largest number of iterations or evaluations came first."""
    STALLED = "stalled"
    """No step along the search direction improved the score, and the gradient is not small."""
    DEGENERATE = "degenerate"
    """The score does not depend on the parameters, or is not finite: there is nothing to optimise."""


@dataclass(frozen=True)
class Solution:
    """The parameters that an optimiser found.

    Attributes
    ----------
    parameters : (P,) float64
        Finite, whatever the status.
    evaluated : (P,) float64
        The point that score and gradient belong to: `parameters`, or just before it where the last step was below the
        tolerance.
    score : float
        The score.
    status : Status
        How the optimisation ended.
    evaluations : int
        How often the score was evaluated, with or without its gradient.
    hessians : int
        How often the Hessian was.
    gradient : (P,) float64
        Of the score.
    hessian : (P, P) float64 or None
        The solver's last model of the second derivatives, where it has one.
    """

    parameters: FloatArray
    evaluated: FloatArray
    score: float
    status: Status
    evaluations: int
    hessians: int
    gradient: FloatArray
    hessian: FloatArray | None = None


class Solver(Protocol):
    """Maximises a score. It never raises: what goes wrong is in the solution's status."""

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return a maximum near the start.

        Parameters
        ----------
        objective : Objective
            The score.
        start : (P,) float64
            Where to begin.
        unit : float
            The change of a parameter that moves the events by about one bin: the length by which steps are measured.
        hessian : (P, P) float64, optional
            A guess of the second derivatives at the start; solvers that have no use for it leave it alone.
        """
