"""What every optimiser offers."""

from __future__ import annotations

from typing import Protocol

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solution import Solution


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
