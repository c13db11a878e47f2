"""Trajectories of pixels as polynomials of time, and events that are carried along them."""

from __future__ import annotations

from cmaxslam_fbp.experiments.flow.batches import FlowBatch
from cmaxslam_fbp.fbp.torch_module import Tensor, torch


def displacement(coefficients: Tensor, start: Tensor | float, end: Tensor | float) -> Tensor:
    """Return `sum_k c_k (end^k - start^k)` with k from 1: (..., 2) of coefficients (..., 2 degree), times (...).

    One degree is a constant flow `c_1` per stretch of time; two let it change.
    """
    per_degree = coefficients.reshape(*coefficients.shape[:-1], -1, 2)
    powers = torch.arange(1, per_degree.shape[-2] + 1, device=coefficients.device)
    first, last = (torch.as_tensor(t, device=coefficients.device)[..., None] ** powers for t in (start, end))
    return ((last - first)[..., None] * per_degree).sum(-2)


def flow_of(coefficients: Tensor) -> Tensor:
    """Return the displacements (B, 2, h, w) from the start to the end of the stretch: to the right, and down."""
    return displacement(coefficients.movedim(1, -1), 0.0, 1.0).movedim(-1, 1)


def warp_events(batch: FlowBatch, coefficients: Tensor, reference: Tensor | float) -> Tensor:
    """Return `x_i + sum_k c_k(x_i) (t_ref^k - t_i^k)`: the rows and columns (M, 2) of the events at a reference time.

    Each event follows the trajectory of the pixel at which it was seen.
    """
    of_pixels = coefficients.movedim(1, -1).flatten(0, 2)
    moved = displacement(of_pixels.index_select(0, batch.pixels), batch.t, reference)
    return batch.places + moved.flip(-1)
