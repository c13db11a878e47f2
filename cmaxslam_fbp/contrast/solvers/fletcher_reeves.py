"""Fletcher-Reeves conjugate gradient with the line search and the stopping rules of CMax-SLAM: the baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import Objective
from cmaxslam_fbp.contrast.solvers.solver import Solution, Status

_GOLDEN = 0.38
_LINE_ITERATIONS = 10
_MAX_BRACKETING = 40


@dataclass(frozen=True)
class FletcherReeves:
    """Conjugate gradient as in the GNU Scientific Library (`conjugate_fr`), which CMax-SLAM uses.

    A step along the search direction that improves the score is taken as it is, and the next one is twice as long.
    One that does not is followed by a line search between here and there (parabolas, golden sections), and a
    new direction `p <- g + |g|^2 / |g_before|^2 p`, which starts anew every P line searches.

    Attributes
    ----------
    initial_step : float
        Length of the first step, in the parameters' own unit.
    line_tolerance : float
        A line search ends where the cosine between the gradient and the direction is below this.
    gradient_tolerance : float
        Norm of the gradient at which the search ends.
    relative_change : float
        Of the score between two iterations, at which the search ends.
    max_iterations : int
        Of steps or line searches.
    """

    initial_step: float = 0.1
    line_tolerance: float = 0.05
    gradient_tolerance: float = 1e-3
    relative_change: float = 1e-4
    max_iterations: int = 50

    def maximise(
        self, objective: Objective, start: FloatArray, *, unit: float = 1.0, hessian: FloatArray | None = None
    ) -> Solution:
        """Return the maximum near the start; see `Solver.maximise`."""
        evaluations, hessians = objective.evaluations, objective.hessians
        x = np.array(start, np.float64)
        score, gradient = objective.value_and_gradient(x)
        direction, step, searches = gradient, self.initial_step, 0
        status = Status.ITERATION_LIMIT
        if not np.isfinite(score) or not np.isfinite(gradient).all():
            status = Status.DEGENERATE
        elif not gradient.any():
            status = Status.DEGENERATE if not objective.hessian(x).any() else Status.CONVERGED
        iterations = self.max_iterations if status is Status.ITERATION_LIMIT else 0
        for _ in range(iterations):
            before = score
            norm = float(np.linalg.norm(direction))
            slope = float(direction @ gradient) / norm
            line = _Line(objective, x, direction * (np.sign(slope) or 1.0) / norm)
            there = objective.value(line.at(step))
            if there > score:
                x, (score, gradient) = line.at(step), objective.value_and_gradient(line.at(step))
                objective.evaluations -= 1  # the value is known, only the gradient is new
                step *= 2
            else:
                found = line.search(score, abs(slope), step, there, self.line_tolerance)
                if found is None:
                    status = Status.STALLED
                    break
                step, score, new_gradient = found
                x = line.at(step)
                searches += 1
                if searches % len(x) == 0:
                    direction = new_gradient
                else:
                    beta = float(new_gradient @ new_gradient) / float(gradient @ gradient)
                    direction = new_gradient + beta * direction
                gradient = new_gradient
            if np.linalg.norm(gradient) < self.gradient_tolerance or not direction.any():
                status = Status.CONVERGED
                break
            if abs(score - before) < self.relative_change * abs(before):
                status = Status.CONVERGED
                break
        return Solution(
            parameters=x,
            evaluated=x,
            score=score,
            status=status,
            evaluations=objective.evaluations - evaluations,
            hessians=objective.hessians - hessians,
            gradient=gradient,
        )


class _Line:
    """The score along a ray."""

    def __init__(self, objective: Objective, origin: FloatArray, direction: FloatArray) -> None:
        self._objective, self._origin, self._direction = objective, origin, direction

    def at(self, step: float) -> FloatArray:
        return self._origin + step * self._direction

    def search(
        self, here: float, slope: float, far: float, there: float, tolerance: float
    ) -> tuple[float, float, FloatArray] | None:
        """Return step, score and gradient of a maximum between zero and a worse point `far`; None if there is none."""
        best = self._bracket(here, slope, far, there)
        if best is None:
            return None
        low, high, step, score = 0.0, best[1], best[0], best[2]
        gradient = self._gradient(step)
        # The three best points so far, for the parabola.
        points = [(step, score), (0.0, here), (high, best[3])]
        before_last = last = high
        for _ in range(_LINE_ITERATIONS):
            trial = _parabola_step(points, low, step, high, before_last)
            value = self._objective.value(self.at(trial))
            if value < score:
                points = sorted([*points, (trial, value)], key=lambda point: -point[1])[:3]
                low, high = (trial, high) if trial < step else (low, trial)
                continue
            before_last, last = last, abs(trial - step)
            low, high = (low, step) if trial < step else (step, high)
            step, score = trial, value
            points = [(step, score), *points[:2]]
            gradient = self._gradient(step)
            norm = float(np.linalg.norm(gradient))
            if norm == 0 or abs(float(gradient @ self._direction)) / norm < tolerance:
                break
        return step, score, gradient

    def _gradient(self, step: float) -> FloatArray:
        """Return the gradient at a step whose value was just counted."""
        _, gradient = self._objective.value_and_gradient(self.at(step))
        self._objective.evaluations -= 1
        return gradient

    def _bracket(self, here: float, slope: float, far: float, there: float) -> tuple[float, float, float, float] | None:
        """Return a better step between zero and `far`, the end `far` of its bracket, and both scores."""
        for _ in range(_MAX_BRACKETING):
            rise = abs(slope * far)
            if rise == 0 or not np.isfinite(there):
                return None
            step = 0.5 * far * rise / ((here - there) + rise)
            if (self.at(step) == self._origin).all():
                return None
            value = self._objective.value(self.at(step))
            if value > here:
                return step, far, value, there
            far, there = step, value
        return None


def _parabola_step(
    points: list[tuple[float, float]], low: float, step: float, high: float, before_last: float
) -> float:
    """Return the top of the parabola through three points where it lies inside the bracket, else a golden section."""
    (u, fu), (v, fv), (w, fw) = points
    dw, dv = w - u, v - u
    above = (fu - fv) * dw * dw - (fu - fw) * dv * dv
    below = 2 * ((fu - fv) * dw - (fu - fw) * dv)
    shift = above / below if below else 0.0
    if shift and low < u + shift < high and abs(shift) < 0.5 * before_last:
        return u + shift
    return step + _GOLDEN * (high - step) if high - step > step - low else step - _GOLDEN * (step - low)
