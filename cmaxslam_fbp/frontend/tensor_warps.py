"""The warps on tensors, for autograd: the equations of `VelocityWarp` once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cmaxslam_fbp.contrast.torch_objective import torch_module
from cmaxslam_fbp.frontend.warps import ModelName

# Series of sin(z)/z and (1 - cos z)/z^2 in z^2: exact in float32 up to z = pi, and smooth at zero.
_SINE = (1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800)
_COSINE = (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600, 1 / 87178291200)


def tensor_points(model: ModelName, grid: Sequence[float], w: Any, x: Any, y: Any, dt_s: Any) -> Any:
    """Return the bin coordinates (N, 2), row before column, under the parameters `w`: (3, 1), or (3, N) per event.

    `grid` is (scale_x, offset_x, scale_y, offset_y); `x`, `y` and `dt_s` are tensors (N,).
    """
    torch = torch_module()
    point = torch.stack([x, y, torch.ones_like(x)])
    if model == "translation":
        moved = point + dt_s * w
    else:
        turned = torch.linalg.cross(w.expand_as(point), point, dim=0)
        if model == "rotation":
            moved = point + dt_s * turned
        else:
            z2 = dt_s**2 * (w**2).sum(0)
            twice = torch.linalg.cross(w.expand_as(point), turned, dim=0)
            moved = point + dt_s * _series(_SINE, z2) * turned + dt_s**2 * _series(_COSINE, z2) * twice
    scale_x, offset_x, scale_y, offset_y = grid
    u, v = moved[0] / moved[2], moved[1] / moved[2]
    return torch.stack([v * scale_y + offset_y, u * scale_x + offset_x], dim=-1)


def _series(coefficients: Sequence[float], z2: Any) -> Any:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * z2 + coefficient
    return value
