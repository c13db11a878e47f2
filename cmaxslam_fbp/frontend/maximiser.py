"""Maximise the score of one packet: from a prediction, with coarser grids where that is not enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import SOLVERS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.contrast.solvers.newton import LATTICE_BINS, Newton
from cmaxslam_fbp.contrast.solvers.solver import Solution, Solver, Status
from cmaxslam_fbp.frontend.covariance import is_nearly_flat
from cmaxslam_fbp.frontend.evidence import deviations_from_still
from cmaxslam_fbp.frontend.motion_models import MotionModel
from cmaxslam_fbp.frontend.objectives import Pyramid, make_objective, with_derivatives, with_gradient
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.search import search
from cmaxslam_fbp.frontend.warps import Grid, VelocityWarp

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
    """The best velocity of a packet, in the warp's sign, and how it was found.

    Attributes
    ----------
    solution : Solution
        The optimiser's.
    hessian, gradient_scatter : (P, P) float64
        Second derivatives of the score there, and `sum_i g_i g_i^T` with the events' parts `g_i` of the gradient.
    quality : float
        Variance of the image of warped events over that of the events where they are.
    least_evidence : float
        Lower bound of the deviations of `Evidence`; 0 where the images are not of counts.
    evaluations, hessians : int
        Of all optimisations and searches.
    is_recovered : bool
        Whether a search has found it.
    """

    solution: Solution
    hessian: FloatArray
    gradient_scatter: FloatArray
    quality: float
    least_evidence: float
    evaluations: int
    hessians: int
    is_recovered: bool


class PacketMaximiser:
    """Finds the velocity that maximises the score of one packet after the other.

    What it remembers of the packets before: the second derivatives, how far predictions were off, and how sharp
    the images were.

    Attributes
    ----------
    pyramid : Pyramid
        The grid, and coarser ones.
    """

    def __init__(self, config: FrontendConfig, model: MotionModel, grid: Grid) -> None:
        self._config, self._model, self._grid = config, model, grid
        self._objective = make_objective(grid.shape, config)
        self._judge = with_derivatives(self._objective, grid.shape, config)
        self._ascended = with_gradient(self._objective, config)
        is_newton = config.solver == "newton"
        self._solver: Solver = Newton(lattice_bins=LATTICE_BINS) if is_newton else SOLVERS[config.solver]()
        self.pyramid = Pyramid(model, grid)
        self._counts_events = config.kernel == "rect" and config.polarity == "ignored" and config.blur_sigma_px == 0
        self._still = np.zeros(model.parameter_count)
        self.forget()

    def forget(self) -> None:
        """Forget the packets before."""
        self._curvatures = CurvatureMemory()
        self._surprise_bins = 0.0
        self._sharpness: float | None = None
        self._count = 0

    def maximise(self, packet: PacketEvents, predicted: FloatArray | None) -> Maximum:
        """Return the maximum of a packet, near the predicted velocity if there is one."""
        warp = VelocityWarp(self._model, self._grid, packet)
        self._objective.use(warp, packet.weights)
        if self._judge is not self._objective:
            self._judge.use(warp, packet.weights)
        self._evaluations = self._hessians = 0
        unit = self._grid.speed_of_one_bin(packet.reach_s)
        is_recovered = False
        if predicted is None and self._config.recovery:
            best = self._search(packet, None, [self._still], unit)
            is_recovered = True
        else:
            start = self._approach(packet, self._still if predicted is None else predicted)
            best = self._climb(start, unit, self._curvatures.at(1, unit, len(packet)))
            if self._config.recovery and self._looks_stuck(best, start, unit, len(packet)):
                other = self._search(packet, best, [start, self._still, best.parameters], unit)
                is_recovered, best = other is not best, other
        sharpness = self._sharpness_at(best.evaluated, len(packet))
        self._remember(best, predicted, unit, len(packet), sharpness)
        hessian, scatter = self._derivatives(best)
        still_sharpness = self._sharpness_at(self._still, len(packet))
        return Maximum(
            solution=best,
            hessian=hessian,
            gradient_scatter=scatter,
            quality=sharpness / max(still_sharpness, 1e-12),
            least_evidence=self._least_evidence(sharpness, still_sharpness, len(packet)),
            evaluations=self._evaluations,
            hessians=self._hessians,
            is_recovered=is_recovered,
        )

    def _least_evidence(self, sharpness: float, still_sharpness: float, count: int) -> float:
        """Return what the images say already of the evidence of a motion; their last one is that at zero velocity."""
        if not self._counts_events:
            return 0.0
        return deviations_from_still(sharpness, still_sharpness, self._objective.image, count)

    def _derivatives(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """Return the Hessian (P, P) at a solution, and the scatter (P, P) of the events' parts of the gradient."""
        scatter = self._judge.gradient_scatter(solution.evaluated)
        hessian = solution.hessian
        if hessian is None or is_nearly_flat(hessian):  # a solver's model hides directions that are flat indeed
            hessian = self._judge.hessian(solution.evaluated)
        return hessian, scatter

    def _climb(self, start: FloatArray, unit: float, hessian: FloatArray | None) -> Solution:
        """Run the solver on the grid itself."""
        solution = self._solver.maximise(self._ascended, start, unit=unit, hessian=hessian)
        self._evaluations += solution.evaluations
        self._hessians += solution.hessians
        return solution

    def _approach(self, packet: PacketEvents, start: FloatArray) -> FloatArray:
        """Return a better start, from a coarser grid, where the last predictions were off."""
        factor = next((factor for bins, factor in _APPROACHES if self._surprise_bins > bins), 1)
        if factor == 1 or not self._config.recovery:
            return start
        objective, unit = self.pyramid.level(factor, packet)
        known = self._curvatures.at(factor, unit, len(packet))
        solution = _APPROACH_SOLVER.maximise(objective, start, unit=unit, hessian=known)
        self._evaluations += solution.evaluations
        self._hessians += solution.hessians
        self._curvatures.put(factor, unit, len(packet), solution)
        return solution.parameters if solution.status is Status.CONVERGED else start

    def _looks_stuck(self, solution: Solution, start: FloatArray, unit: float, count: int) -> bool:
        """Return whether a result should be compared with others."""
        if solution.status is not Status.CONVERGED:
            return True
        if self._sharpness is None or abs(count - self._count) > _SAME_COUNT * self._count:
            return False
        is_far = np.linalg.norm(solution.parameters - start) > _FAR_BINS * unit
        return self._sharpness_at(solution.evaluated, count) < (_DROP_FAR if is_far else _DROP) * self._sharpness

    def _search(
        self, packet: PacketEvents, solution: Solution | None, starts: list[FloatArray], unit: float
    ) -> Solution:
        """Return the best of a solution, if there is one, and those that a search on coarser grids leads to."""
        found = search(self.pyramid, packet, starts, self._config.max_speed)
        self._evaluations += found.evaluations
        self._hessians += found.hessians
        others = [self._climb(candidate, unit, None) for candidate in found.candidates]
        return max([*([] if solution is None else [solution]), *others], key=lambda one: one.score)

    def _remember(
        self, best: Solution, predicted: FloatArray | None, unit: float, count: int, sharpness: float
    ) -> None:
        self._curvatures.put(1, unit, count, best)
        if predicted is not None:
            surprise = float(np.linalg.norm(best.parameters - predicted)) / unit
            self._surprise_bins = max(_SURPRISE_MEMORY * self._surprise_bins, surprise)
        before = sharpness if self._sharpness is None else self._sharpness
        self._sharpness = _SHARPNESS_MEMORY * before + (1 - _SHARPNESS_MEMORY) * sharpness
        self._count = count

    def _sharpness_at(self, velocity: FloatArray, count: int) -> float:
        """Variance over squared mean of the image of `count` events, moved by a velocity."""
        self._objective.make_image(velocity)
        image = self._objective.image
        return Variance().value(image) / (count / image.size) ** 2


class CurvatureMemory:
    """Keeps the last Hessian of each grid: the first model of the next packet's.

    It is scaled to a packet of another length and number of events. Velocities move events in proportion to the
    packet's length, and squares of counts grow with the square of their number, so second derivatives grow with the
    squares of both (those of a likelihood with less than the second, which the first steps of an optimiser set right).
    Only solutions that converged are kept.
    """

    def __init__(self) -> None:
        self._kept: dict[int, FloatArray] = {}

    def at(self, factor: int, unit: float, count: int) -> FloatArray | None:
        """Return the Hessian to expect on the grid of that factor.

        There `unit` is the velocity that moves the packet's last event by one bin, and `count` the number of events.
        """
        kept = self._kept.get(factor)
        return None if kept is None else kept * (count / unit) ** 2

    def put(self, factor: int, unit: float, count: int, solution: Solution) -> None:
        """Keep the Hessian of a solution; one that did not converge makes it forget."""
        if solution.status is Status.CONVERGED and solution.hessian is not None:
            self._kept[factor] = solution.hessian * (unit / count) ** 2
        else:
            self._kept.pop(factor, None)
