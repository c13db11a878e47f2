"""Kernels of finite support: the paper's `k`, which bin the points.

The function of a kernel takes `x` in bin widths and the `order` of the derivative, 0, 1 or 2, and returns float64.
At a break point the value is the one from the right, so that bin `j` owns `[j - 1/2, j + 1/2)` and neighbouring
bins never share a point. Derivatives are the pointwise ones: jumps contribute nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import BinningError

KernelFunction = Callable[[npt.ArrayLike, int], FloatArray]

GAUSS_CUT = 1.5


@dataclass(frozen=True)
class Kernel:
    """A kernel that is smooth between break points one bin apart.

    Attributes
    ----------
    function : callable
        `function(x, order)`.
    radius : float
        The support is [-radius, radius), a whole number of bins. The break points are a whole number of bins from its
        ends, so they lie on integers where the radius is one, and on half-integers where it is not.
    scale : float
        A constant that multiplies the D-dimensional product once.
    """

    function: KernelFunction
    radius: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.support < 1 or self.support != 2 * self.radius:
            raise BinningError(f"the support of a kernel is a whole number of bins, not {2 * self.radius:g}")

    @property
    def support(self) -> int:
        """The number of bins that one point touches along one axis."""
        return round(2 * self.radius)

    @property
    def break_points(self) -> FloatArray:
        """The ends of the pieces (support + 1,)."""
        return np.arange(self.support + 1, dtype=np.float64) - self.radius

    def jumps(self, order: int) -> FloatArray:
        """Return by how much a derivative jumps at each break point (support + 1,)."""
        before = np.nextafter(self.break_points, -np.inf)
        return self.function(self.break_points, order) - self.function(before, order)

    @cached_property
    def highest_derivative(self) -> int:
        """The highest order, of 0 to 2, whose derivative is not zero almost everywhere."""
        between = self.break_points[:-1, None] + np.array([0.17, 0.45, 0.83])
        return max(order for order in range(3) if order == 0 or self.function(between, order).any())


def derivative_orders(dimensions: int, order: int) -> list[tuple[int, ...]]:
    """Return the multi-indices of the value, of the gradient, or of the upper triangle of the Hessian."""
    unit = [tuple(int(axis == d) for axis in range(dimensions)) for d in range(dimensions)]
    if order == 0:
        return [(0,) * dimensions]
    if order == 1:
        return unit
    return [
        tuple(map(sum, zip(unit[d], unit[e], strict=True))) for d in range(dimensions) for e in range(d, dimensions)
    ]


def inside(x: FloatArray, low: float, high: float) -> FloatArray:
    """One on `[low, high)`, zero elsewhere."""
    return ((x >= low) & (x < high)).astype(np.float64)


def k_rect(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = 1` on [-1/2, 1/2). Its derivative is zero wherever it exists."""
    x = np.asarray(x, np.float64)
    return inside(x, -0.5, 0.5) if order == 0 else np.zeros_like(x)


def k_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = 1 - |x|` on [-1, 1); `k' = +1` on [-1, 0) and `-1` on [0, 1); `k'' = 0`."""
    x = np.asarray(x, np.float64)
    if order == 0:
        return np.maximum(1 - np.abs(x), 0)
    return inside(x, -1, 0) - inside(x, 0, 1) if order == 1 else np.zeros_like(x)


def k_gauss(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = phi(x)` on [-3/2, 3/2), with `phi' = -x phi` and `phi'' = (x^2 - 1) phi`. Its integral is 0.866."""
    x = np.asarray(x, np.float64)
    return (np.ones_like(x), -x, x * x - 1)[order] * gauss_density(x) * inside(x, -GAUSS_CUT, GAUSS_CUT)


def gauss_density(x: npt.ArrayLike) -> FloatArray:
    """`phi(x) = exp(-x^2 / 2) / sqrt(2 pi)`, not cut."""
    return np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)


RECT = Kernel(k_rect, 0.5)
LINEAR = Kernel(k_linear, 1.0)
GAUSS = Kernel(k_gauss, GAUSS_CUT)
