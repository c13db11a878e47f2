"""The warps on tensors, for autograd: the equations of `VelocityWarp` once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cmaxslam_fbp.fbp.torch_module import torch
from cmaxslam_fbp.frontend.warps import ModelName

# Series of sin(z)/z and (1 - cos z)/z^2 in z^2: exact in float32 up to z = pi, and smooth at zero.
_SINE = (1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800)
_COSINE = (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600, 1 / 87178291200)


def tensor_points(model: ModelName, grid: Sequence[float], w: Any, x: Any, y: Any, dt_s: Any) -> Any:
    """Return the bin coordinates (N, 2), row before column, under the parameters `w`: (3, 1), or (3, N) per event.

    `grid` is (scale_x, offset_x, scale_y, offset_y); `x`, `y` and `dt_s` are tensors (N,). The operations are those of
    the compiled warps, in their order, so that the points are the same bits.
    """
    if model == "translation":
        q1, q2, q3 = x + dt_s * w[0], y + dt_s * w[1], dt_s * w[2] + 1.0
    else:
        c1, c2, c3 = w[1] - w[2] * y, w[2] * x - w[0], w[0] * y - w[1] * x
        if model == "rotation":
            q1, q2, q3 = x + dt_s * c1, y + dt_s * c2, dt_s * c3 + 1.0
        else:
            z2 = dt_s * dt_s * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
            s, c = dt_s * _series(_SINE, z2), dt_s * dt_s * _series(_COSINE, z2)
            d1, d2, d3 = w[1] * c3 - w[2] * c2, w[2] * c1 - w[0] * c3, w[0] * c2 - w[1] * c1
            q1, q2, q3 = x + s * c1 + c * d1, y + s * c2 + c * d2, s * c3 + 1.0 + c * d3
    scale_x, offset_x, scale_y, offset_y = grid
    inverse = 1.0 / q3
    return torch.stack([q2 * inverse * scale_y + offset_y, q1 * inverse * scale_x + offset_x], dim=-1)


def _series(coefficients: Sequence[float], z2: Any) -> Any:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * z2 + coefficient
    return value
