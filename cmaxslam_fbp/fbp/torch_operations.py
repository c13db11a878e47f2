"""Scatter and gather on tensors: any device, any floating type, batches (..., N, D), and all of autograd.

Two operations are enough, because they are closed under differentiation. With `K_n(u) = prod_d kappa^(n_d)(u_d)`

- scatter: `h_j = sum_i sum_m v_im K_(n_m)(x_i - j)`, from values (..., N, M) to a frame;
- gather: `q_im = sum_j h_j K_(n_m)(x_i - j)`, from a frame to values (..., N, M);

each is the transpose of the other, and a derivative along the points raises the orders `n_m` by one. So both can be
differentiated any number of times, forward and backward. The only rule that is not calculus is that of functional
backpropagation: `K_0` is made of `k` while nothing has been differentiated with respect to the points (`is_exact`), and
of `kappa` from then on.

Samples of unequal length lie behind each other: each point has an `owner`, the frame that it belongs to.

`torch.compile` does not look into autograd functions that have a forward mode. In its graph the two operations are
nodes, which have the same code inside and the same rules for what goes backward, and know their kernels by a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from cmaxslam_fbp.fbp.kernels import Kernel
from cmaxslam_fbp.fbp.tables import KernelTable, kernel_table, polynomials
from cmaxslam_fbp.fbp.torch_module import Tensor, torch

Orders = tuple[tuple[int, ...], ...]

_CPU_CHUNK = 1 << 15  # points at a time: what one neighbouring bin needs stays in the cache
_DEVICE_CHUNK = 1 << 20


@dataclass(frozen=True)
class FrameKernels:
    """The shape of the frame and the two kernels: what the operations know besides tensors.

    `owners` is how many frames the points (N, D) of a batch's element are shared among; None for one, without an axis.
    """

    shape: tuple[int, ...]
    k: Kernel
    kappa: Kernel
    owners: int | None = None

    @property
    def frames(self) -> tuple[int, ...]:
        """The shape of what a batch's element is binned to: `shape`, or (owners, *shape)."""
        return self.shape if self.owners is None else (self.owners, *self.shape)

    def table(self, is_exact: bool, dtype: torch.dtype) -> KernelTable:
        """Return the polynomials of `k` or of `kappa`, as good as the type of number asks for."""
        kernel = self.k if is_exact else self.kappa
        return kernel_table(kernel, len(self.shape), is_single_precision=dtype != torch.float64)


NamedFrames = FrameKernels | str  # itself, or its name in a compiled graph
_NAMES: dict[FrameKernels, str] = {}
_NAMED: dict[str, FrameKernels] = {}


def name_of(grid: FrameKernels) -> str:
    """Return a name by which `_grid` finds a grid."""
    name = _NAMES.setdefault(grid, str(len(_NAMES)))
    _NAMED[name] = grid
    return name


def _grid(name: str) -> FrameKernels:
    """Return the grid of a name, or of a name and a number of owners behind a slash."""
    name, _, owners = name.partition("/")
    return replace(_NAMED[name], owners=int(owners)) if owners else _NAMED[name]


class _Chunk:
    """Some of the points (B, n, D): the first bins that they touch, and the weights of these bins and the next ones.

    Indices are those of a frame with a margin of the support on all sides. Points that touch nothing, and those that
    are not finite, touch the margin alone.
    """

    def __init__(self, points: Tensor, frames: Tensor, table: KernelTable, shape: tuple[int, ...]) -> None:
        margin = table.support
        self._table, self._fractions = table, []
        self._weights: dict[tuple[int, int, int], Tensor] = {}
        self.first = frames * math.prod(n + 2 * margin for n in shape)
        columns = points.movedim(-1, 0).contiguous()
        for x, size, step in zip(columns, shape, _steps(shape, margin), strict=True):
            x = torch.where(torch.isfinite(x), x, -2.0 * margin).clamp(-2 * margin, size + 2 * margin)
            whole = torch.floor(x)
            fraction = x - whole
            if table.is_centred:  # the upper half of a bin belongs to the next one
                is_upper = (fraction >= 0.5).to(x.dtype)
                whole, fraction = whole + is_upper, fraction - is_upper
            else:
                fraction = fraction - 0.5
            self._fractions.append(fraction)
            bins = (whole.long() - table.reach).clamp(-margin, size) + margin
            self.first = self.first + bins * step

    def weight(self, axis: int, s: int, order: int) -> Tensor:
        """Return the weight (B, n) of the touched bin `s` along an axis, by Horner's rule."""
        key = (axis, s, order)
        if key not in self._weights:
            highest, *coefficients = polynomials(self._table, order)[s]
            u = self._fractions[axis]
            weight = u * highest if coefficients else torch.full_like(u, highest)
            for coefficient in coefficients[:-1]:
                weight.add_(coefficient).mul_(u)
            self._weights[key] = weight.add_(coefficients[-1]) if coefficients else weight
        return self._weights[key]

    def lead(self, offsets: tuple[int, ...], order: tuple[int, ...]) -> Tensor | None:
        """Return the product of the weights along all axes but the last; None where there is no other."""
        product_ = None
        for axis, s in enumerate(offsets):
            weight = self.weight(axis, s, order[axis])
            product_ = weight if product_ is None else product_ * weight
        return product_


def _flat(tensor: Tensor) -> Tensor:
    """Return a tensor (..., N, M) as one with a single batch axis: (B, N, M), also where nothing is in it."""
    return tensor.reshape(math.prod(tensor.shape[:-2]), *tensor.shape[-2:])


def _steps(shape: tuple[int, ...], margin: int) -> list[int]:
    """Return the step of every axis of a frame with a margin, in bins."""
    sizes = [n + 2 * margin for n in shape]
    return [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]


def _chunks(
    points: Tensor, owner: Tensor | None, table: KernelTable, grid: FrameKernels
) -> Iterator[tuple[slice, _Chunk]]:
    """Cut the points (B, N, D) in chunks that bound the memory, whatever N and the support."""
    length = max(1, (_CPU_CHUNK if points.device.type == "cpu" else _DEVICE_CHUNK) // max(1, points.shape[0]))
    batch = torch.arange(points.shape[0], device=points.device)[:, None] * (grid.owners or 1)
    for start in range(0, points.shape[1], length):
        where = slice(start, start + length)
        part = points[:, where]
        frames = batch.expand(part.shape[:2])
        if owner is not None:
            frames = frames + owner.reshape(points.shape[:2])[:, where]
        yield where, _Chunk(part, frames, table, grid.shape)


def _rows(table: KernelTable, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the offsets along all axes but the last, and their sum in bins: one per row of touched bins."""
    steps = _steps(shape, table.support)
    for offsets in product(range(table.support), repeat=len(shape) - 1):
        yield offsets, sum(s * step for s, step in zip(offsets, steps[:-1], strict=True))


def raised(orders: Orders) -> Orders:
    """Return the orders after one more derivative: each order in turn, along each axis in turn."""
    return tuple(tuple(n + (e == d) for e, n in enumerate(order)) for order in orders for d in range(len(order)))


def gradients_of(points: Tensor, frame: Tensor, owner: Tensor | None, grid: NamedFrames, orders: Orders) -> Tensor:
    """Return the derivatives of `gather` with respect to the points: (..., N, M, D). Equal ones are gathered once."""
    higher = raised(orders)
    distinct = tuple(dict.fromkeys(higher))
    gathered = gather(points, frame, owner, grid, distinct, False)
    picks = torch.tensor([distinct.index(order) for order in higher], device=points.device)
    return gathered.index_select(-1, picks).reshape(*points.shape[:-1], len(orders), points.shape[-1])


def _in_front(info: Any, in_dims: Any, *tensors: Tensor | None) -> Iterator[Any]:
    """Yield the tensors with the mapped axis in front of the batch; those that are not mapped are spread over it."""
    for dim, tensor in zip(in_dims, tensors, strict=False):
        if tensor is None:
            yield None
        else:
            yield tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the derivatives of an operation need."""
    points, other, owner, ctx.grid, orders, ctx.is_exact = inputs
    ctx.orders = _orders(orders, points) if isinstance(ctx.grid, str) else orders
    ctx.save_for_backward(points, other, owner)
    ctx.save_for_forward(points, other, owner)


class Scatter(torch.autograd.Function):
    """`h_j = sum_i sum_m v_im K_(n_m)(x_i - j)`: points (..., N, D) and values (..., N, M) to a frame (..., *shape).

    With owners (..., N) the sum of a frame is over the points that it owns: (..., owners, *shape).
    """

    @staticmethod
    def forward(
        points: Tensor, values: Tensor, owner: Tensor | None, grid: FrameKernels, orders: Orders, is_exact: bool
    ) -> Tensor:
        """Compute the operation, one neighbouring bin at a time."""
        x, v = _flat(points), _flat(values)
        table = grid.table(is_exact, points.dtype)
        sizes = [n + 2 * table.support for n in grid.shape]
        frame = points.new_zeros(x.shape[0] * (grid.owners or 1) * math.prod(sizes))
        for where, chunk in _chunks(x, owner, table, grid):
            for offsets, step in _rows(table, grid.shape):
                amounts: dict[int, Tensor] = {}  # what the row gets, by the order along the last axis
                for m, order in enumerate(orders):
                    lead, value = chunk.lead(offsets, order), v[:, where, m]
                    amount = value if lead is None else value * lead
                    amounts[order[-1]] = amounts[order[-1]] + amount if order[-1] in amounts else amount
                for s in range(table.support):
                    shares = [amount * chunk.weight(len(sizes) - 1, s, n) for n, amount in amounts.items()]
                    index = (chunk.first + (step + s)).reshape(-1)
                    frame.index_add_(0, index, sum(shares[1:], shares[0]).reshape(-1))
        inside = tuple(slice(table.support, -table.support) for _ in sizes)
        frame = frame.reshape(-1, *sizes)[(slice(None), *inside)]
        return frame.reshape(*points.shape[:-2], *grid.frames)

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, frame_bar: Tensor) -> tuple[Tensor | None, ...]:
        """Pull a cotangent back: the transpose, and the gradients at the points."""
        points, values, owner = ctx.saved_tensors
        points_bar = values_bar = None
        if ctx.needs_input_grad[0]:
            gradients = gradients_of(points, frame_bar, owner, ctx.grid, ctx.orders)
            points_bar = (values[..., None] * gradients).sum(-2)
        if ctx.needs_input_grad[1]:
            values_bar = gather(points, frame_bar, owner, ctx.grid, ctx.orders, ctx.is_exact)
        return points_bar, values_bar, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, points_dot: Tensor | None, values_dot: Tensor | None, *_: Any) -> Tensor:
        """Push tangents forward."""
        points, values, owner = ctx.saved_tensors
        frame_dot = points.new_zeros((*points.shape[:-2], *ctx.grid.frames))
        if points_dot is not None:
            along = (values[..., None] * points_dot[..., None, :]).flatten(-2)
            frame_dot = frame_dot + scatter(points, along, owner, ctx.grid, raised(ctx.orders), False)
        if values_dot is not None:
            frame_dot = frame_dot + scatter(points, values_dot, owner, ctx.grid, ctx.orders, ctx.is_exact)
        return frame_dot

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, points: Tensor, values: Tensor, owner: Tensor | None, *constants: Any
    ) -> tuple[Tensor, int]:
        """Move the mapped axis in front of the batch."""
        return scatter(*_in_front(info, in_dims, points, values, owner), *constants), 0


class Gather(torch.autograd.Function):
    """`q_im = sum_j h_j K_(n_m)(x_i - j)`: points (..., N, D) and a frame (..., *shape) to values (..., N, M)."""

    @staticmethod
    def forward(
        points: Tensor, frame: Tensor, owner: Tensor | None, grid: FrameKernels, orders: Orders, is_exact: bool
    ) -> Tensor:
        """Compute the operation, one neighbouring bin at a time."""
        x, h = _flat(points), frame.reshape(-1, *grid.shape)
        table, last = grid.table(is_exact, points.dtype), len(grid.shape) - 1
        h = torch.nn.functional.pad(h, [table.support] * (2 * len(grid.shape))).reshape(-1)
        values = x.new_zeros((len(orders), *x.shape[:2]))
        for where, chunk in _chunks(x, owner, table, grid):
            for offsets, step in _rows(table, grid.shape):
                sums: dict[int, Tensor] = {}  # over the row, by the order along the last axis
                for s in range(table.support):
                    bins = torch.take(h, chunk.first + (step + s))
                    for n in {order[-1] for order in orders}:
                        term = bins * chunk.weight(last, s, n)
                        sums[n] = sums[n].add_(term) if n in sums else term
                for m, order in enumerate(orders):
                    lead, row = chunk.lead(offsets, order), sums[order[-1]]
                    values[m, :, where].add_(row if lead is None else row * lead)
        return values.movedim(0, -1).reshape(*points.shape[:-1], len(orders))

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, values_bar: Tensor) -> tuple[Tensor | None, ...]:
        """Pull a cotangent back: the transpose, and the gradients at the points."""
        points, frame, owner = ctx.saved_tensors
        points_bar = frame_bar = None
        if ctx.needs_input_grad[0]:
            points_bar = (values_bar[..., None] * gradients_of(points, frame, owner, ctx.grid, ctx.orders)).sum(-2)
        if ctx.needs_input_grad[1]:
            frame_bar = scatter(points, values_bar, owner, ctx.grid, ctx.orders, ctx.is_exact)
        return points_bar, frame_bar, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, points_dot: Tensor | None, frame_dot: Tensor | None, *_: Any) -> Tensor:
        """Push tangents forward."""
        points, frame, owner = ctx.saved_tensors
        values_dot = points.new_zeros((*points.shape[:-1], len(ctx.orders)))
        if points_dot is not None:
            gradients = gradients_of(points, frame, owner, ctx.grid, ctx.orders)
            values_dot = values_dot + (gradients * points_dot[..., None, :]).sum(-1)
        if frame_dot is not None:
            values_dot = values_dot + gather(points, frame_dot, owner, ctx.grid, ctx.orders, ctx.is_exact)
        return values_dot

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, points: Tensor, frame: Tensor, owner: Tensor | None, *constants: Any
    ) -> tuple[Tensor, int]:
        """Move the mapped axis in front of the batch."""
        return gather(*_in_front(info, in_dims, points, frame, owner), *constants), 0


def scatter(
    points: Tensor, values: Tensor, owner: Tensor | None, grid: NamedFrames, orders: Orders, is_exact: bool
) -> Tensor:
    """Return `Scatter` of the arguments; with the name of a grid, as a node of a compiled graph."""
    operation: Callable[..., Tensor] = scatter_node if isinstance(grid, str) else Scatter.apply
    return operation(points, values, owner, grid, _listed(grid, orders), is_exact)


def gather(
    points: Tensor, frame: Tensor, owner: Tensor | None, grid: NamedFrames, orders: Orders, is_exact: bool
) -> Tensor:
    """Return `Gather` of the arguments; with the name of a grid, as a node of a compiled graph."""
    operation: Callable[..., Tensor] = gather_node if isinstance(grid, str) else Gather.apply
    return operation(points, frame, owner, grid, _listed(grid, orders), is_exact)


def _listed(grid: NamedFrames, orders: Orders) -> Orders | list[int]:
    """Return orders as a node takes them: one behind the other."""
    return [n for order in orders for n in order] if isinstance(grid, str) else orders


def _orders(listed: list[int], points: Tensor) -> Orders:
    """Return orders that were listed for a node."""
    dimensions = points.shape[-1]
    return tuple(tuple(listed[m : m + dimensions]) for m in range(0, len(listed), dimensions))


@torch.library.custom_op("cmaxslam_fbp::scatter", mutates_args=())
def scatter_node(
    points: Tensor, values: Tensor, owner: Tensor | None, grid: str, orders: list[int], is_exact: bool
) -> Tensor:
    """`Scatter` as a node of a compiled graph."""
    return Scatter.forward(points, values, owner, _grid(grid), _orders(orders, points), is_exact).contiguous()


@torch.library.custom_op("cmaxslam_fbp::gather", mutates_args=())
def gather_node(
    points: Tensor, frame: Tensor, owner: Tensor | None, grid: str, orders: list[int], is_exact: bool
) -> Tensor:
    """`Gather` as a node of a compiled graph."""
    return Gather.forward(points, frame, owner, _grid(grid), _orders(orders, points), is_exact).contiguous()


@scatter_node.register_fake
def _(points: Tensor, values: Tensor, owner: Tensor | None, grid: str, orders: list[int], is_exact: bool) -> Tensor:
    return points.new_empty((*points.shape[:-2], *_grid(grid).frames))


@gather_node.register_fake
def _(points: Tensor, frame: Tensor, owner: Tensor | None, grid: str, orders: list[int], is_exact: bool) -> Tensor:
    return points.new_empty((*points.shape[:-1], len(_orders(orders, points))))


scatter_node.register_autograd(Scatter.backward, setup_context=_keep)
gather_node.register_autograd(Gather.backward, setup_context=_keep)
