"""The tensor backend: the two operations of `torch_operations` on points, weights and frames."""

from __future__ import annotations

from dataclasses import replace

from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp.kernels import Kernel, derivative_orders
from cmaxslam_fbp.fbp.torch_module import Tensor, torch
from cmaxslam_fbp.fbp.torch_operations import (
    FrameKernels,
    NamedFrames,
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
    """Both operations on tensors; autograd can differentiate them any number of times."""

    def __init__(self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel) -> None:
        self._frames = FrameKernels(shape, forward_kernel, derivative_kernel)
        self._name, self._shape = name_of(self._frames), shape
        self._value: Orders = ((0,) * len(shape),)

    def _grid(self, owners: int | None = None) -> NamedFrames:
        """Return the grid, of points that are shared among some frames; in a compiled graph its name."""
        if torch.compiler.is_compiling():
            return self._name if owners is None else f"{self._name}/{owners}"
        return self._frames if owners is None else replace(self._frames, owners=owners)

    def count_ignored(self, points: Tensor) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return int((~torch.isfinite(self.points(points))).any(-1).sum())

    def scatter(self, order: int, x: Tensor, w: Tensor | None, x_dot: Tensor | None, frame: Tensor | None) -> Tensor:
        """Add `sum_i w_i prod_d k(x_id - j_d)`, or for order 1 its derivative along `x_dot`, to the frame."""
        amounts = _weights(x, w)[..., None]
        amounts = amounts if x_dot is None else amounts * x_dot
        orders = tuple(derivative_orders(len(self._shape), order))
        added = scatter(x, amounts, None, self._grid(), orders, order == 0)
        return added if frame is None else frame + added

    def scatter_samples(self, x: Tensor, w: Tensor | None, offsets: Tensor) -> Tensor:
        """`h_bj = sum_(o_b <= i < o_(b + 1)) w_i prod_d k(x_id - j_d)`: one frame per sample."""
        ends = torch.as_tensor(offsets)
        if ends.ndim != 1 or len(ends) < 2 or ends.is_floating_point() or x.ndim != 2 or not _rises_to(ends, len(x)):
            raise BinningError(
                "offsets must be whole numbers (B + 1,) in rising order, from 0 to the number of the points (N, D)"
            )
        owner = torch.bucketize(torch.arange(len(x), device=x.device), ends[1:-1].to(x.device), right=True)
        return scatter(x, _weights(x, w)[..., None], owner, self._grid(len(ends) - 1), self._value, True)

    def gather(self, order: int, x: Tensor, w: Tensor | None, x_dot: Tensor | None, frame: Tensor, out: None) -> Tensor:
        """Return `w_i sum_j h_j D prod_d k(x_id - j_d)`, `D` all derivatives of the order, or that along `x_dot`."""
        _refuse(out)
        if x_dot is not None:
            curvatures = gradients_of(x, frame, None, self._grid(), raised(self._value))
            found = (curvatures * x_dot[..., None, :]).sum(-1)
        else:
            found = gather(x, frame, None, self._grid(), tuple(derivative_orders(len(self._shape), order)), order == 0)
        if order == 0:
            return found[..., 0]
        return _weights(x, w)[..., None] * found

    def zeros(self, x: Tensor, out: None) -> Tensor:
        """Return an empty frame for the points."""
        _refuse(out)
        return x.new_zeros((*x.shape[:-2], *self._shape))

    def points(self, points: Tensor) -> Tensor:
        """Return the points; a `BinningError` where they are none."""
        dimensions = len(self._shape)
        if not isinstance(points, Tensor) or not points.is_floating_point():
            raise BinningError("the torch backend takes tensors of a floating type as points")
        if points.ndim < 2 or points.shape[-1] != dimensions:
            raise BinningError(f"points must have the shape (..., N, {dimensions}), not {tuple(points.shape)}")
        return points

    def like(self, values: Tensor, x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
        """Return what belongs to the points `x`, in their type, spread over their batch where it has none."""
        tensor = torch.as_tensor(values).to(x)
        try:
            return tensor.expand(shape)
        except RuntimeError as error:
            raise BinningError(f"{name} must have the shape {tuple(shape)}, not {tuple(tensor.shape)}") from error


def _weights(x: Tensor, w: Tensor | None) -> Tensor:
    return x.new_ones(()).expand(x.shape[:-1]) if w is None else w


def _refuse(out: None) -> None:
    if out is not None:
        raise BinningError("the torch backend makes new tensors: `out` is for the numba backend")
