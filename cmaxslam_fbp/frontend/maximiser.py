"""Maximise the score of one packet: from a prediction, with coarser grids where that is not enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import SOLVERS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.contrast.solution import Solution, Status
from cmaxslam_fbp.contrast.solvers import LATTICE_BINS, Newton, Solver
from cmaxslam_fbp.frontend.covariance import is_nearly_flat
from cmaxslam_fbp.frontend.curvature_memory import CurvatureMemory
from cmaxslam_fbp.frontend.objectives import make_objective, make_smooth_objective, with_gradient
from cmaxslam_fbp.frontend.packet_points import PacketPoints
from cmaxslam_fbp.frontend.pyramid import Pyramid
from cmaxslam_fbp.frontend.search import search
from cmaxslam_fbp.frontend.warps import Grid

# Where the last predictions were off by more than so many bins, a grid of bins so many times as wide comes first.
_APPROACHES = ((1.5, 4), (0.5, 2))
_SURPRISE_MEMORY = 0.6  # what is left of a surprise after each packet
_APPROACH_SOLVER = Newton(tolerance_bins=0.1, max_evaluations=8, lattice_bins=LATTICE_BINS)

# A result is checked by a search if its image is less sharp than those before by these factors: the second
# where it lies this far from its start.
_DROP, _DROP_FAR, _FAR_BINS = 0.7, 0.9, 3.0
_SHARPNESS_MEMORY = 0.7
_SAME_COUNT = 0.2  # sharpness is compared where the numbers of events differ by less than this part


@dataclass(frozen=True)
class Maximum:
    """The best velocity of a packet, in the warp's sign, and how it was found."""

    solution: Solution
    evaluations: int
    hessians: int
    is_recovered: bool
    sharpness: float


class PacketMaximiser:
    """Finds the velocity that maximises the score of one packet after the other.

    What it remembers of the packets before: the second derivatives, how far predictions were off, and how sharp
    the images were.
    """

    def __init__(self, config: FrontendConfig, grid: Grid, points: PacketPoints) -> None:
        self._config, self._grid, self._points = config, grid, points
        self._objective = make_objective(grid.shape, config)
        self._smooth = make_smooth_objective(grid.shape, config) or self._objective
        self._ascended = with_gradient(self._objective, config)
        self._solver: Solver = SOLVERS[config.solver]()
        if config.solver == "newton":
            self._solver = Newton(lattice_bins=LATTICE_BINS)
        self._pyramid = Pyramid(config.model, grid, points)
        self.forget()

    def forget(self) -> None:
        """Forget the packets before."""
        self._curvatures = CurvatureMemory()
        self._surprise_bins = 0.0
        self._sharpness: float | None = None
        self._count = 0

    def maximise(self, predicted: FloatArray | None) -> Maximum:
        """Return the maximum of the packet that the points hold, near the prediction if there is one."""
        for objective in {id(o): o for o in (self._objective, self._smooth)}.values():
            objective.use(self._points.warp(self._config.model, self._grid), self._points.weights)
        self._evaluations = self._hessians = 0
        unit = self._points.unit(self._grid)
        is_recovered = False
        if predicted is None and self._config.recovery:
            best = self._search(None, [np.zeros(3)], unit)
            is_recovered = True
        else:
            start = self._approach(np.zeros(3) if predicted is None else predicted)
            best = self._climb(start, unit, self._curvatures.at(1, unit, len(self._points)))
            if self._config.recovery and self._looks_stuck(best, start, unit):
                other = self._search(best, [start, np.zeros(3), best.parameters], unit)
                is_recovered, best = other is not best, other
        sharpness = self._sharpness_at(best)
        self._remember(best, predicted, unit, sharpness)
        return Maximum(best, self._evaluations, self._hessians, is_recovered, sharpness)

    def derivatives(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian (3, 3) at a solution, and the scatter (3, 3) of the events' parts of the gradient."""
        scatter = self._smooth.gradient_scatter(solution.evaluated)
        hessian = solution.hessian
        if hessian is None or is_nearly_flat(hessian):  # a solver's model hides directions that are flat indeed
            hessian = self._smooth.hessian(solution.evaluated)
        return hessian, scatter

    def sharpness_without_motion(self) -> float:
        """Return the sharpness of the image of the events where they are."""
        self._objective.value(np.zeros(3))
        return self._sharpness_of_image()

    def _climb(self, start: FloatArray, unit: float, hessian: FloatArray | None) -> Solution:
        """Run the solver on the grid itself."""
        solution = self._solver.maximise(self._ascended, start, unit=unit, hessian=hessian)
        self._evaluations += solution.evaluations
        self._hessians += solution.hessians
        return solution

    def _approach(self, start: FloatArray) -> FloatArray:
        """Return a better start, from a coarser grid, where the last predictions were off."""
        factor = next((factor for bins, factor in _APPROACHES if self._surprise_bins > bins), 1)
        if factor == 1 or not self._config.recovery:
            return start
        objective, unit = self._pyramid.level(factor)
        known = self._curvatures.at(factor, unit, len(self._points))
        solution = _APPROACH_SOLVER.maximise(objective, start, unit=unit, hessian=known)
        self._evaluations += solution.evaluations
        self._hessians += solution.hessians
        self._curvatures.put(factor, unit, len(self._points), solution)
        return solution.parameters if solution.status is Status.CONVERGED else start

    def _looks_stuck(self, solution: Solution, start: FloatArray, unit: float) -> bool:
        """Return whether a result should be compared with others."""
        if solution.status is not Status.CONVERGED:
            return True
        if self._sharpness is None or abs(len(self._points) - self._count) > _SAME_COUNT * self._count:
            return False
        is_far = np.linalg.norm(solution.parameters - start) > _FAR_BINS * unit
        return self._sharpness_at(solution) < (_DROP_FAR if is_far else _DROP) * self._sharpness

    def _search(self, solution: Solution | None, starts: list[FloatArray], unit: float) -> Solution:
        """Return the best of a solution, if there is one, and those that a search on coarser grids leads to."""
        found = search(self._pyramid, starts, self._config.max_speed)
        self._evaluations += found.evaluations
        self._hessians += found.hessians
        others = [self._climb(candidate, unit, None) for candidate in found.candidates]
        return max([*([] if solution is None else [solution]), *others], key=lambda one: one.score)

    def _remember(self, best: Solution, predicted: FloatArray | None, unit: float, sharpness: float) -> None:
        self._curvatures.put(1, unit, len(self._points), best)
        if predicted is not None:
            surprise = float(np.linalg.norm(best.parameters - predicted)) / unit
            self._surprise_bins = max(_SURPRISE_MEMORY * self._surprise_bins, surprise)
        before = sharpness if self._sharpness is None else self._sharpness
        self._sharpness = _SHARPNESS_MEMORY * before + (1 - _SHARPNESS_MEMORY) * sharpness
        self._count = len(self._points)

    def _sharpness_at(self, solution: Solution) -> float:
        self._objective.make_image(solution.evaluated)
        return self._sharpness_of_image()

    def _sharpness_of_image(self) -> float:
        """Variance over squared mean of the image."""
        image: Any = self._objective.image
        mean = len(self._points) / image.size
        return Variance().value(image) / mean**2
