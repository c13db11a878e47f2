"""How far a flow is from the truth: end-point error, angular error, outliers; as the DSEC benchmark has them."""

from __future__ import annotations

from dataclasses import dataclass

from cmaxslam_fbp.fbp.torch_module import Tensor, torch

OUTLIER_PX = 3.0


@dataclass(frozen=True)
class FlowErrors:
    """Means over pixels: end-point error in pixels, angular error in degrees, percentage of errors above 3 px."""

    epe_px: float
    ae_deg: float
    outliers_percent: float


def end_point_errors(flow: Tensor, truth: Tensor) -> Tensor:
    """Return `|u - u*|` (B, h, w) of flows (B, 2, h, w) in pixels."""
    return (flow - truth).norm(dim=1)


def angular_errors(flow: Tensor, truth: Tensor) -> Tensor:
    """Return the angles (B, h, w) in degrees between `(u, v, 1)` and `(u*, v*, 1)`, of flows (B, 2, h, w)."""
    dot = 1 + (flow * truth).sum(1)
    lengths = (1 + flow.square().sum(1)).sqrt() * (1 + truth.square().sum(1)).sqrt()
    return torch.rad2deg(torch.acos((dot / lengths).clamp(-1, 1)))


def flow_errors(flow: Tensor, truth: Tensor, where: Tensor) -> FlowErrors:
    """Return the mean errors over the pixels `where` (B, h, w), which must not be none."""
    distances = end_point_errors(flow, truth)[where]
    return FlowErrors(
        float(distances.mean()),
        float(angular_errors(flow, truth)[where].mean()),
        float(100 * (distances > OUTLIER_PX).double().mean()),
    )
