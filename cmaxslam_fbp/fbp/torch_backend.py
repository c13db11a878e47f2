"""The tensor backend: any device, any floating type, batches (..., N, D), and all of autograd.

Two operations are enough, because they are closed under differentiation. With `K_n(u) = prod_d kappa^(n_d)(u_d)`

- scatter: `h_j = sum_i sum_m v_im K_(n_m)(x_i - j)`, from values (..., N, M) to a frame;
- gather: `q_im = sum_j h_j K_(n_m)(x_i - j)`, from a frame to values (..., N, M);

each is the transpose of the other, and a derivative along the points raises the orders `n_m` by one. So both can be
differentiated any number of times, forward and backward. The only rule that is not calculus is that of functional
backpropagation: `K_0` is made of `k` while nothing has been differentiated with respect to the points (`is_exact`), and
of `kappa` from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..errors import BinningError, MissingExtraError
from .pairs import Kernel
from .tables import Table, kernel_table

try:
    import torch
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "the torch backend needs PyTorch: pip install 'cmaxslam-fbp[torch]', or use backend='numba'"
    ) from error

Tensor = torch.Tensor
Orders = tuple[tuple[int, ...], ...]

_CPU_CHUNK = 1 << 15  # points at a time: what one neighbouring bin needs stays in the cache
_DEVICE_CHUNK = 1 << 20


@dataclass(frozen=True)
class Grid:
    """The shape of the frame and the two kernels: what the operations know besides tensors."""

    shape: tuple[int, ...]
    k: Kernel
    kappa: Kernel

    def table(self, is_exact: bool, dtype: torch.dtype) -> Table:
        """Return the polynomials of `k` or of `kappa`, as good as the type of number asks for."""
        kernel = self.k if is_exact else self.kappa
        dimensions = 1 if is_exact else len(self.shape)
        return kernel_table(kernel, dimensions, is_single_precision=dtype != torch.float64)


class _Axis:
    """One coordinate of some points, and the bins that they touch along it."""

    def __init__(self, x: Tensor, table: Table, size: int) -> None:
        self.is_finite = torch.isfinite(x)
        far = size + 2.0 * table.support  # far outside, and small enough for an integer
        x = torch.where(self.is_finite, x, torch.zeros_like(x)).clamp(-far, far)
        whole = torch.floor(x)
        self._u = x - whole
        if table.is_centred:
            is_upper = (self._u >= 0.5).to(x.dtype)
            whole, self._u = whole + is_upper, self._u - is_upper
        else:
            self._u = self._u - 0.5
        self._first = whole.long() - table.reach
        self._table, self._size = table, size

    def neighbour(self, s: int, orders: set[int]) -> tuple[Tensor, Tensor, dict[int, Tensor]]:
        """Return whether the touched bin `s` is inside, its index, and its weight of each order."""
        bins = self._first + s
        return (bins >= 0) & (bins < self._size), bins, {n: self._weight(s, n) for n in orders}

    def _weight(self, s: int, order: int) -> Tensor:
        coefficients = self._table.derivative(order)[:, s].tolist()
        weight = torch.full_like(self._u, coefficients[0])
        for coefficient in coefficients[1:]:
            weight.mul_(self._u).add_(coefficient)
        return weight


def _neighbours(
    grid: Grid, points: Tensor, orders: Orders, is_exact: bool
) -> Iterator[tuple[slice, Tensor, Tensor, list[Tensor]]]:
    """For chunks of the points (B, N, D), for each bin around them: which points, is it inside, where, its products.

    A bin outside, and one of a point that is not finite, has the flat index of the first bin of its frame.
    """
    table = grid.table(is_exact, points.dtype)
    length = max(1, (_CPU_CHUNK if points.device.type == "cpu" else _DEVICE_CHUNK) // max(1, points.shape[0]))
    start_of_frame = torch.arange(points.shape[0], device=points.device)[:, None] * math.prod(grid.shape)
    wanted = [{order[d] for order in orders} for d in range(len(grid.shape))]
    for start in range(0, points.shape[1], length):
        where = slice(start, start + length)
        axes = [_Axis(points[:, where, d], table, size) for d, size in enumerate(grid.shape)]
        is_finite = torch.stack([axis.is_finite for axis in axes]).all(0)
        # The last axis comes up again for every row of bins, so its weights are kept.
        last = [axes[-1].neighbour(s, wanted[-1]) for s in range(table.support)]
        for offsets in product(range(table.support), repeat=len(axes) - 1):
            rows = [axis.neighbour(s, n) for axis, s, n in zip(axes[:-1], offsets, wanted[:-1], strict=True)]
            for column in last:
                inside, index = is_finite, torch.zeros_like(column[1])
                for (is_inside, bins, _), size in zip([*rows, column], grid.shape, strict=True):
                    inside, index = inside & is_inside, index * size + bins
                index = torch.where(inside, index, 0) + start_of_frame
                products = []
                for order in orders:
                    weight = column[2][order[-1]]
                    for (_, _, weights), n in zip(rows, order[:-1], strict=True):
                        weight = weight * weights[n]
                    products.append(weight)
                yield where, inside, index, products


def _raised(orders: Orders) -> Orders:
    """Return the orders after one more derivative: each order in turn, along each axis in turn."""
    return tuple(tuple(n + (e == d) for e, n in enumerate(order)) for order in orders for d in range(len(order)))


def _gradients(points: Tensor, frame: Tensor, grid: Grid, orders: Orders) -> Tensor:
    """Return the derivatives of `gather` with respect to the points: (..., N, M, D). Equal ones are gathered once."""
    raised = _raised(orders)
    distinct = tuple(dict.fromkeys(raised))
    gathered = gather(points, frame, grid, distinct, False)
    picks = torch.tensor([distinct.index(order) for order in raised], device=points.device)
    return gathered.index_select(-1, picks).reshape(*points.shape[:-1], len(orders), len(grid.shape))


def _in_front(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class Scatter(torch.autograd.Function):
    """`h_j = sum_i sum_m v_im K_(n_m)(x_i - j)`: points (..., N, D) and values (..., N, M) to a frame (..., *shape)."""

    @staticmethod
    def forward(points: Tensor, values: Tensor, grid: Grid, orders: Orders, is_exact: bool) -> Tensor:
        """Compute the operation, one neighbouring bin at a time."""
        batch = points.shape[:-2]
        x, v = points.reshape(-1, *points.shape[-2:]), values.reshape(-1, *values.shape[-2:])
        frame = points.new_zeros(x.shape[0] * math.prod(grid.shape))
        for where, inside, index, products in _neighbours(grid, x, orders, is_exact):
            share = v[:, where, 0] * products[0]
            for m in range(1, len(orders)):
                share.addcmul_(v[:, where, m], products[m])
            share = torch.where(inside, share, 0)
            frame.index_add_(0, index.reshape(-1), share.reshape(-1))
        return frame.reshape(*batch, *grid.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the derivatives need."""
        points, values, ctx.grid, ctx.orders, ctx.is_exact = inputs
        ctx.save_for_backward(points, values)
        ctx.save_for_forward(points, values)

    @staticmethod
    def backward(ctx: Any, frame_bar: Tensor) -> tuple[Tensor | None, ...]:
        """Pull a cotangent back: the transpose, and the gradients at the points."""
        points, values = ctx.saved_tensors
        points_bar = values_bar = None
        if ctx.needs_input_grad[0]:
            gradients = _gradients(points, frame_bar, ctx.grid, ctx.orders)
            points_bar = (values[..., None] * gradients).sum(-2)
        if ctx.needs_input_grad[1]:
            values_bar = gather(points, frame_bar, ctx.grid, ctx.orders, ctx.is_exact)
        return points_bar, values_bar, None, None, None

    @staticmethod
    def jvp(ctx: Any, points_dot: Tensor | None, values_dot: Tensor | None, *_: Any) -> Tensor:
        """Push tangents forward."""
        points, values = ctx.saved_tensors
        frame_dot = points.new_zeros((*points.shape[:-2], *ctx.grid.shape))
        if points_dot is not None:
            along = (values[..., None] * points_dot[..., None, :]).flatten(-2)
            frame_dot = frame_dot + scatter(points, along, ctx.grid, _raised(ctx.orders), False)
        if values_dot is not None:
            frame_dot = frame_dot + scatter(points, values_dot, ctx.grid, ctx.orders, ctx.is_exact)
        return frame_dot

    @staticmethod
    def vmap(info: Any, in_dims: Any, points: Tensor, values: Tensor, *constants: Any) -> tuple[Tensor, int]:
        """Move the mapped axis in front of the batch."""
        points = _in_front(points, in_dims[0], info.batch_size)
        values = _in_front(values, in_dims[1], info.batch_size)
        return scatter(points, values, *constants), 0


class Gather(torch.autograd.Function):
    """`q_im = sum_j h_j K_(n_m)(x_i - j)`: points (..., N, D) and a frame (..., *shape) to values (..., N, M)."""

    @staticmethod
    def forward(points: Tensor, frame: Tensor, grid: Grid, orders: Orders, is_exact: bool) -> Tensor:
        """Compute the operation, one neighbouring bin at a time."""
        x, h = points.reshape(-1, *points.shape[-2:]), frame.reshape(-1)
        values = x.new_zeros((*x.shape[:2], len(orders)))
        for where, inside, index, products in _neighbours(grid, x, orders, is_exact):
            bins = torch.where(inside, h[index], 0)
            for m, weight in enumerate(products):
                values[:, where, m].addcmul_(bins, weight)
        return values.reshape(*points.shape[:-1], len(orders))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the derivatives need."""
        points, frame, ctx.grid, ctx.orders, ctx.is_exact = inputs
        ctx.save_for_backward(points, frame)
        ctx.save_for_forward(points, frame)

    @staticmethod
    def backward(ctx: Any, values_bar: Tensor) -> tuple[Tensor | None, ...]:
        """Pull a cotangent back: the transpose, and the gradients at the points."""
        points, frame = ctx.saved_tensors
        points_bar = frame_bar = None
        if ctx.needs_input_grad[0]:
            points_bar = (values_bar[..., None] * _gradients(points, frame, ctx.grid, ctx.orders)).sum(-2)
        if ctx.needs_input_grad[1]:
            frame_bar = scatter(points, values_bar, ctx.grid, ctx.orders, ctx.is_exact)
        return points_bar, frame_bar, None, None, None

    @staticmethod
    def jvp(ctx: Any, points_dot: Tensor | None, frame_dot: Tensor | None, *_: Any) -> Tensor:
        """Push tangents forward."""
        points, frame = ctx.saved_tensors
        values_dot = points.new_zeros((*points.shape[:-1], len(ctx.orders)))
        if points_dot is not None:
            gradients = _gradients(points, frame, ctx.grid, ctx.orders)
            values_dot = values_dot + (gradients * points_dot[..., None, :]).sum(-1)
        if frame_dot is not None:
            values_dot = values_dot + gather(points, frame_dot, ctx.grid, ctx.orders, ctx.is_exact)
        return values_dot

    @staticmethod
    def vmap(info: Any, in_dims: Any, points: Tensor, frame: Tensor, *constants: Any) -> tuple[Tensor, int]:
        """Move the mapped axis in front of the batch."""
        points = _in_front(points, in_dims[0], info.batch_size)
        frame = _in_front(frame, in_dims[1], info.batch_size)
        return gather(points, frame, *constants), 0


# Bound once, because `apply` has no types.
scatter: Callable[..., Tensor] = Scatter.apply
gather: Callable[..., Tensor] = Gather.apply


class TorchBackend:
    """The four operations on tensors; `forward` can be differentiated by autograd, and so can the others."""

    def __init__(self, shape: tuple[int, ...], forward_kernel: Kernel, derivative_kernel: Kernel) -> None:
        self._grid = Grid(shape, forward_kernel, derivative_kernel)
        self._value: Orders = ((0,) * len(shape),)

    def count_ignored(self, points: Tensor) -> int:
        """Return the number of points with a coordinate that is not finite."""
        return int((~torch.isfinite(self._points(points, None))).any(-1).sum())

    def forward(self, points: Tensor, weights: Tensor | None, out: None) -> Tensor:
        """`h_j = sum_i w_i prod_d k(x_id - j_d)`."""
        x, w = self._points(points, out), self._weights(points, weights)
        return scatter(x, w[..., None], self._grid, self._value, True)

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
        frame_dot = x.new_zeros((*x.shape[:-2], *self._grid.shape))
        if points_dot is not None:
            along = w[..., None] * self._like(points_dot, x, x.shape, "points_dot")
            frame_dot = frame_dot + scatter(x, along, self._grid, _raised(self._value), False)
        if weights_dot is not None:
            amounts = self._like(weights_dot, x, x.shape[:-1], "weights_dot")[..., None]
            frame_dot = frame_dot + scatter(x, amounts, self._grid, self._value, True)
        return frame_dot

    def vjp(
        self, points: Tensor, weights: Tensor | None, frame_bar: Tensor, with_weights: bool, out: None
    ) -> tuple[Tensor, Tensor | None]:
        """`xbar_id = w_i sum_j hbar_j d/dx_id prod_e kappa(x_ie - j_e)`;
        `wbar_i = sum_j hbar_j prod_d k(x_id - j_d)`.
        """
        x, w = self._points(points, out), self._weights(points, weights)
        h_bar = self._frame(frame_bar, x)
        points_bar = w[..., None] * _gradients(x, h_bar, self._grid, self._value)[..., 0, :]
        if not with_weights:
            return points_bar, None
        return points_bar, gather(x, h_bar, self._grid, self._value, True)[..., 0]

    def hvp(self, points: Tensor, weights: Tensor | None, frame_bar: Tensor, points_dot: Tensor, out: None) -> Tensor:
        """`w_i sum_j hbar_j sum_e xdot_ie d^2/dx_id dx_ie prod_f kappa(x_if - j_f)`."""
        x, w = self._points(points, out), self._weights(points, weights)
        curvatures = _gradients(x, self._frame(frame_bar, x), self._grid, _raised(self._value))
        x_dot = self._like(points_dot, x, x.shape, "points_dot")
        return w[..., None] * (curvatures * x_dot[..., None, :]).sum(-1)

    def _points(self, points: Tensor, out: None) -> Tensor:
        dimensions = len(self._grid.shape)
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
        return self._like(frame_bar, points, (*points.shape[:-2], *self._grid.shape), "frame_bar")

    @staticmethod
    def _like(tensor: Tensor, points: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
        """Return the tensor in the type of the points, spread over their batch where it has none."""
        tensor = torch.as_tensor(tensor).to(points)
        try:
            return tensor.expand(shape)
        except RuntimeError as error:
            raise BinningError(f"{name} must have the shape {tuple(shape)}, not {tuple(tensor.shape)}") from error
