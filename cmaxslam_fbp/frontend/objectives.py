"""What is maximised for a packet: the configured score on the grid itself, a simpler one on coarser grids."""

from __future__ import annotations

from typing import Any, Protocol

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.finite_differences import FiniteDifferences
from cmaxslam_fbp.contrast.objective import ContrastObjective, Objective
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.frontend.motion_models import MotionModel
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.warps import Grid, VelocityWarp


class ImageObjective(Objective, Protocol):
    """The score of the image of a packet's warped events."""

    has_derivatives: bool

    @property
    def image(self) -> SingleArray:
        """The image of the last evaluation, after the blur."""

    def use(self, warp: VelocityWarp, weights: SingleArray | None = None) -> None:
        """Set the events of the next evaluations, with one weight (N,) each."""

    def make_image(self, theta: FloatArray) -> None:
        """Make the image at some parameters (P,)."""

    def gradient_scatter(self, theta: FloatArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with the part `g_i` that each event has in the gradient."""


def make_objective(shape: tuple[int, int], config: FrontendConfig) -> ImageObjective:
    """Return warp, binning, blur and score in one, for images of a shape."""
    settings: dict[str, Any] = {
        "kernel": config.kernel,
        "reconstruction": None if config.reconstruction == "none" else config.reconstruction,
        "surrogate": config.surrogate,
        "blur_sigma_px": config.blur_sigma_px,
    }
    if config.compute == "torch":
        from cmaxslam_fbp.contrast.torch_objective import TorchObjective

        return TorchObjective(shape, SCORES[config.score](), device=config.device, **settings)
    return ContrastObjective(shape, SCORES[config.score](), **settings)


def with_gradient(objective: ImageObjective, config: FrontendConfig) -> Objective:
    """Return the objective itself, or with finite differences where it has no gradient."""
    return objective if objective.has_derivatives else FiniteDifferences(objective, config.difference_step)


def with_derivatives(objective: ImageObjective, shape: tuple[int, int], config: FrontendConfig) -> ImageObjective:
    """Return the objective itself, or where it has no derivatives one that has, to judge a maximum by."""
    if objective.has_derivatives:
        return objective
    return make_objective(shape, config.model_copy(update={"reconstruction": "linear"}))


class Pyramid:
    """Objectives on coarser versions of a grid: the finest decides, the coarser ones see further.

    A gradient sees as far as its kernel: 1.5 bins. On bins four times as wide it leads from four times as far away.
    These objectives serve to find the way, whatever the finest one is like: rect binning with linear
    reconstruction, variance.
    """

    def __init__(self, model: MotionModel, grid: Grid) -> None:
        self.model = model
        self.grid = grid
        self._levels: dict[int, tuple[Grid, ContrastObjective]] = {}

    def level(self, factor: int, packet: PacketEvents) -> tuple[ContrastObjective, float]:
        """Return the objective of a packet on bins `factor` times as wide, and the speed of one such bin."""
        if factor not in self._levels:
            grid = self.grid.coarser(factor)
            self._levels[factor] = grid, ContrastObjective(grid.shape, Variance())
        grid, objective = self._levels[factor]
        objective.use(VelocityWarp(self.model, grid, packet), packet.weights)
        return objective, grid.speed_of_one_bin(packet.reach_s)
