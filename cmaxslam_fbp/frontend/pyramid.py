"""One packet on grids of several widths: the finest decides, the coarser ones see further."""

from __future__ import annotations

from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.frontend.packet_points import PacketPoints
from cmaxslam_fbp.frontend.warps import Grid, ModelName


class Pyramid:
    """Objectives on coarser versions of a grid.

    A gradient sees as far as its kernel: 1.5 bins. On bins four times as wide it leads from four times as far away.
    These objectives serve to find the way, whatever the finest one is like: rect binning with linear
    reconstruction, variance.
    """

    def __init__(self, model: ModelName, grid: Grid, points: PacketPoints) -> None:
        self._model, self._grid, self._points = model, grid, points
        self._levels: dict[int, tuple[Grid, ContrastObjective]] = {}

    def level(self, factor: int) -> tuple[ContrastObjective, float]:
        """Return the objective of the present packet on bins `factor` times as wide, and the unit of its steps."""
        if factor not in self._levels:
            grid = self._grid.coarser(factor)
            self._levels[factor] = grid, ContrastObjective(grid.shape, Variance())
        grid, objective = self._levels[factor]
        objective.use(self._points.warp(self._model, grid), self._points.weights)
        return objective, self._points.unit(grid)
