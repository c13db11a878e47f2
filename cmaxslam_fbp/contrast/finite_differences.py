"""Derivatives by central differences of the values: for a binning that has no others."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective


class FiniteDifferences:
    """An objective whose derivatives are central differences of its score, with one step for all parameters.

    The paper's row "Rect": plain rect binning, where the score is constant between jumps. The step decides what
    the difference sees: one so small that few events change their bins sees noise. All values count as evaluations.

    Parameters
    ----------
    objective
        Gives the values.
    step : float
        Half of the distance of two points of a difference, in the parameters' unit.
    """

    def __init__(self, objective: Objective, step: float) -> None:
        if not step > 0:
            raise ValueError(f"the step of a finite difference must be positive, not {step}")
        self._objective, self._step = objective, step
        self.hessians = 0

    @property
    def evaluations(self) -> int:
        """How often the score was evaluated."""
        return self._objective.evaluations

    @evaluations.setter
    def evaluations(self, count: int) -> None:
        self._objective.evaluations = count

    def value(self, theta: FloatArray) -> float:
        """Return the score."""
        return self._objective.value(theta)

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and `(S(theta + h e) - S(theta - h e)) / 2 h` for every axis `e`."""
        steps = self._step * np.eye(len(theta))
        gradient = [self.value(theta + step) - self.value(theta - step) for step in steps]
        return self.value(theta), np.array(gradient) / (2 * self._step)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the central differences of second order (P, P)."""
        steps = self._step * np.eye(len(theta))
        here = self.value(theta)
        result = np.empty((len(theta), len(theta)))
        for a, one in enumerate(steps):
            result[a, a] = self.value(theta + one) - 2 * here + self.value(theta - one)
            for b, other in enumerate(steps[:a]):
                same = self.value(theta + one + other) + self.value(theta - one - other)
                opposite = self.value(theta + one - other) + self.value(theta - one + other)
                result[a, b] = result[b, a] = 0.25 * (same - opposite)
        self.hessians += 1
        return result / self._step**2
