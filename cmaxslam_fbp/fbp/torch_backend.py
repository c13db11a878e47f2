"""The tensor backend: binning and its derivatives as the two operations of `torch_operations`."""

from __future__ import annotations

from dataclasses import replace

from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp.kernels import Kernel
from cmaxslam_fbp.fbp.torch_module import Tensor, torch
from cmaxslam_fbp.fbp.torch_operations import (
    FrameKernels,
    Grid,
    Orders,
    gather,
    gradients_of,
    name_of,
    raised,
    scatter,
)


def _rises_to(ends: Tensor, count: int) -> bool:
    """Return whether offsets on the host go from 0 to a number; those on a device are not fetched to be looked at."""
    if ends.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    return bool(ends[0] == 0 and ends[-1] == count and (ends.diff() >= 0).all())


class TorchBackend:
    """The operations on tensors; `forward` can be differentiated by autograd, and so can the others."""

    def __init__(self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel) -> None:
        self._frames = FrameKernels(shape, forward_kernel, derivative_kernel)
        self._name, self._shape = name_of(self._frames), shape
        self._value: Orders = ((0,) * len(shape),)

    @property
    def _grid(self) -> Grid:
        return self._name if torch.compiler.is_compiling() else self._frames

    def _shared_grid(self, owners: int) -> Grid:
        """Return the grid of points that are shared among some frames."""
        return f"{self._name}/{owners}" if torch.compiler.is_compiling() else replace(self._frames, owners=owners)

    def count_ignored(self, points: Tensor) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return int((~torch.isfinite(self._points(points, None))).any(-1).sum())

    def forward(self, points: Tensor, weights: Tensor | None, out: None) -> Tensor:
        """`h_j = sum_i w_i prod_d k(x_id - j_d)`."""
        x, w = self._points(points, out), self._weights(points, weights)
        return scatter(x, w[..., None], None, self._grid, self._value, True)

    def forward_samples(self, points: Tensor, weights: Tensor | None, offsets: Tensor) -> Tensor:
        """`h_bj = sum_(o_b <= i < o_(b + 1)) w_i prod_d k(x_id - j_d)`: one frame per sample."""
        x, w = self._points(points, None), self._weights(points, weights)
        ends = torch.as_tensor(offsets)
        if ends.ndim != 1 or len(ends) < 2 or ends.is_floating_point() or x.ndim != 2 or not _rises_to(ends, len(x)):
            raise BinningError(
                "offsets must be whole numbers (B + 1,) in rising order, from 0 to the number of the points (N, D)"
            )
        owner = torch.bucketize(torch.arange(len(x), device=x.device), ends[1:-1].to(x.device), right=True)
        return scatter(x, w[..., None], owner, self._shared_grid(len(ends) - 1), self._value, True)

    def jvp(
        self,
        points: Tensor,
        weights: Tensor | None,
        points_dot: Tensor | None,
        weights_dot: Tensor | None,
        out: None,
    ) -> Tensor:
        """`hdot_j = sum_i w_i sum_d xdot_id d/dx_id prod_e kappa(x_ie - j_e) + sum_i wdot_i prod_d k(x_id - j_d)`."""
        x, w = self._points(points, out), self._weights(points, weights)
        frame_dot = x.new_zeros((*x.shape[:-2], *self._shape))
        if points_dot is not None:
            along = w[..., None] * self._like(points_dot, x, x.shape, "points_dot")
            frame_dot = frame_dot + scatter(x, along, None, self._grid, raised(self._value), False)
        if weights_dot is not None:
            amounts = self._like(weights_dot, x, x.shape[:-1], "weights_dot")[..., None]
            frame_dot = frame_dot + scatter(x, amounts, None, self._grid, self._value, True)
        return frame_dot

    def vjp(
        self, points: Tensor, weights: Tensor | None, frame_bar: Tensor, with_weights: bool, out: None
    ) -> tuple[Tensor, Tensor | None]:
        """`xbar_id = w_i sum_j hbar_j d/dx_id prod_e kappa(x_ie - j_e)`;
        `wbar_i = sum_j hbar_j prod_d k(x_id - j_d)`.
        """
        x, w = self._points(points, out), self._weights(points, weights)
        h_bar = self._frame(frame_bar, x)
        points_bar = w[..., None] * gradients_of(x, h_bar, None, self._grid, self._value)[..., 0, :]
        if not with_weights:
            return points_bar, None
        return points_bar, gather(x, h_bar, None, self._grid, self._value, True)[..., 0]

    def hvp(self, points: Tensor, weights: Tensor | None, frame_bar: Tensor, points_dot: Tensor, out: None) -> Tensor:
        """`w_i sum_j hbar_j sum_e xdot_ie d^2/dx_id dx_ie prod_f kappa(x_if - j_f)`."""
        x, w = self._points(points, out), self._weights(points, weights)
        curvatures = gradients_of(x, self._frame(frame_bar, x), None, self._grid, raised(self._value))
        x_dot = self._like(points_dot, x, x.shape, "points_dot")
        return w[..., None] * (curvatures * x_dot[..., None, :]).sum(-1)

    def curvatures(self, points: Tensor, weights: Tensor | None, frame_bar: Tensor, out: None) -> Tensor:
        """`w_i sum_j hbar_j d^2/dx_id dx_ie prod_f kappa(x_if - j_f)` for all `d <= e`."""
        x, w = self._points(points, out), self._weights(points, weights)
        upper = tuple(dict.fromkeys(raised(raised(self._value))))
        return w[..., None] * gather(x, self._frame(frame_bar, x), None, self._grid, upper, False)

    def _points(self, points: Tensor, out: None) -> Tensor:
        dimensions = len(self._shape)
        if not isinstance(points, Tensor) or not points.is_floating_point():
            raise BinningError("the torch backend takes tensors of a floating type as points")
        if points.ndim < 2 or points.shape[-1] != dimensions:
            raise BinningError(f"points must have the shape (..., N, {dimensions}), not {tuple(points.shape)}")
        if out is not None:
            raise BinningError("the torch backend makes new tensors: `out` is for the numba backend")
        return points

    def _weights(self, points: Tensor, weights: Tensor | None) -> Tensor:
        if weights is None:
            return points.new_ones(()).expand(points.shape[:-1])
        return self._like(weights, points, points.shape[:-1], "weights")

    def _frame(self, frame_bar: Tensor, points: Tensor) -> Tensor:
        return self._like(frame_bar, points, (*points.shape[:-2], *self._shape), "frame_bar")

    @staticmethod
    def _like(tensor: Tensor, points: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
        """Return the tensor in the type of the points, spread over their batch where it has none."""
        tensor = torch.as_tensor(tensor).to(points)
        try:
            return tensor.expand(shape)
        except RuntimeError as error:
            raise BinningError(f"{name} must have the shape {tuple(shape)}, not {tuple(tensor.shape)}") from error
