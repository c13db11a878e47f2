"""Find the neighbourhood of the best velocity when there is no good starting point: coarse grids first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.solvers.newton import LATTICE_BINS, Newton
from cmaxslam_fbp.frontend.objectives import Pyramid
from cmaxslam_fbp.frontend.packet_events import PacketEvents

_FACTORS = (4, 2)
_SPREAD_BINS = 1.5  # distance of the extra starting points, in bins of the coarsest grid
_KEPT = 3
_SAME_BINS = 0.25  # results closer than this, in bins of their grid, count as one
_SOLVER = Newton(tolerance_bins=0.05, max_evaluations=12, lattice_bins=LATTICE_BINS)


@dataclass(frozen=True)
class SearchResult:
    """Velocities worth starting from, the best first, and what it took to find them."""

    candidates: list[FloatArray]
    evaluations: int
    hessians: int


def search(pyramid: Pyramid, packet: PacketEvents, starts: Sequence[FloatArray], max_speed: float) -> SearchResult:
    """Return where the score of coarser grids is largest, from the given starting points and some around them.

    At the coarsest grid, the score is compared at the starting points, and at two more along each axis. From the
    best three the optimiser runs on that grid, and from its distinct results on the next finer one.
    """
    evaluations = hessians = 0
    still, axes = np.zeros(pyramid.model.parameter_count), np.eye(pyramid.model.parameter_count)
    candidates: list[FloatArray] = []
    for factor in _FACTORS:
        objective, unit = pyramid.level(factor, packet)
        before = objective.evaluations, objective.hessians
        if not candidates:
            offsets = _SPREAD_BINS * unit * np.concatenate([[still], axes, -axes])
            tried = [start + offset for start in starts for offset in offsets]
            tried = [velocity for velocity in tried if velocity @ velocity <= max_speed**2] or [still]
            tried.sort(key=objective.value, reverse=True)
            candidates = tried[:_KEPT]
        solutions = [_SOLVER.maximise(objective, candidate, unit=unit) for candidate in candidates]
        solutions.sort(key=lambda solution: solution.score, reverse=True)
        candidates = _distinct([solution.parameters for solution in solutions], _SAME_BINS * unit)
        evaluations += objective.evaluations - before[0]
        hessians += objective.hessians - before[1]
    return SearchResult(candidates, evaluations, hessians)


def _distinct(velocities: list[FloatArray], distance: float) -> list[FloatArray]:
    """Return the velocities in their order, without those close to an earlier one."""
    kept: list[FloatArray] = []
    for velocity in velocities:
        if all(np.linalg.norm(velocity - other) > distance for other in kept):
            kept.append(velocity)
    return kept
