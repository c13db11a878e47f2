"""A position that is a smooth function of time: linear and cubic B-splines in space with uniform knots."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.nanoseconds import as_nanoseconds
from cmaxslam_fbp.trajectory.spline import ORDERS, RotationSpline


@dataclass(frozen=True, eq=False)
class PositionSpline:
    """`c(t) = sum_j B_j(u) c_{i+j}`, with the knots, segments and ends of `RotationSpline`.

    Attributes
    ----------
    order : int
        2 (linear) or 4 (cubic).
    start_ns, step_ns : int
        First covered time, and time between knots.
    controls : (K, 3) float64
        Control positions.
    """

    order: int
    start_ns: int
    step_ns: int
    controls: FloatArray

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise TrajectoryError(f"a spline has order 2 (linear) or 4 (cubic), not {self.order}")
        if self.controls.ndim != 2 or self.controls.shape[1] != 3 or len(self.controls) < self.order:
            raise TypeError(f"control positions are (K, 3) with K >= {self.order}, not {self.controls.shape}")

    def __len__(self) -> int:
        """Return the number `K` of control positions."""
        return len(self.controls)

    @property
    def end_ns(self) -> int:
        """Last covered time."""
        return self.start_ns + (len(self) - self.order + 1) * self.step_ns

    def positions_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return the positions (T, 3) at times (T,)."""
        first, weights = weights_at(self, t_ns)
        return np.asarray(np.einsum("tj,tjk->tk", weights, self.controls[first[:, None] + np.arange(self.order)]))

    def part(self, first: int, count: int) -> PositionSpline:
        """Return the spline of `count` control positions from index `first` on."""
        if first < 0 or count < self.order or first + count > len(self):
            raise TrajectoryError(f"control positions {first} to {first + count} are no part of {len(self)}")
        controls = self.controls[first : first + count]
        return replace(self, start_ns=self.start_ns + first * self.step_ns, controls=controls)


def weights_at(spline: PositionSpline | RotationSpline, t_ns: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    """Return the first control of each time, and the weights `B_j(u)` (T, order) of a position spline from it on."""
    t = as_nanoseconds(t_ns)
    if t.size and (t.min() < spline.start_ns or t.max() > spline.end_ns):
        raise TrajectoryError(
            f"times {t.min()} to {t.max()} ns reach outside the spline, "
            f"which covers {spline.start_ns} to {spline.end_ns} ns"
        )
    since = t - spline.start_ns
    first = np.minimum(since // spline.step_ns, len(spline) - spline.order)
    u = (since - first * spline.step_ns) / spline.step_ns
    if spline.order == 2:
        return first, np.stack([1 - u, u], axis=-1)
    v = 1 - u
    middle = (4 - 6 * u**2 + 3 * u**3) / 6
    return first, np.stack([v**3 / 6, middle, (4 - 6 * v**2 + 3 * v**3) / 6, u**3 / 6], axis=-1)
