"""The objective that the configuration describes."""

from __future__ import annotations

from typing import Any

from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.finite_differences import FiniteDifferences
from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.fbp.kappa import derivative_kernel
from cmaxslam_fbp.frontend.warps import Grid
from cmaxslam_fbp.geometry.camera import Camera


def make_grid(camera: Camera, config: FrontendConfig) -> Grid:
    """Return the bins of the image of warped events."""
    if config.grid == "sensor":
        return Grid.sensor(camera)
    columns, rows = config.grid_size
    return Grid.normalised(camera, (rows, columns), config.grid_step)


def make_objective(shape: tuple[int, int], config: FrontendConfig) -> Any:
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


def make_smooth_objective(shape: tuple[int, int], config: FrontendConfig) -> Any:
    """Return an objective with derivatives to judge a maximum by, where the configured one has none; else None."""
    if not needs_differences(config):
        return None
    return make_objective(shape, config.model_copy(update={"reconstruction": "linear"}))


def needs_differences(config: FrontendConfig) -> bool:
    """Return whether the score has no gradient but that of finite differences."""
    reconstruction = None if config.reconstruction == "none" else config.reconstruction
    return derivative_kernel(config.kernel, reconstruction, config.surrogate).highest_derivative == 0


def with_gradient(objective: Any, config: FrontendConfig) -> Any:
    """Return the objective itself, or with finite differences where it has no gradient."""
    return FiniteDifferences(objective, config.difference_step) if needs_differences(config) else objective
