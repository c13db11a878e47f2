"""A rotation that is a smooth function of time: linear and cubic B-splines on SO(3) with uniform knots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.nanoseconds import as_nanoseconds
from cmaxslam_fbp.trajectory import spline_kernels

ORDERS = {2: "linear", 4: "cubic"}


class SplineJacobians(NamedTuple):
    """How the value at each time follows its control rotations `first, ..., first + order - 1`.

    `R(t; exp(delta_k) R_k) = exp(sum_k J_k delta_k) R(t)` to first order; the `J_k` of a time sum to the identity.
    """

    first: npt.NDArray[np.int64]  # (...,)
    jacobians: FloatArray  # (..., order, 3, 3)


@dataclass(frozen=True, eq=False)
class RotationSpline:
    """A cumulative B-spline `R_wc(t) = R_i prod_{j=1}^{order-1} exp(B~_j(u) log(R_{i+j-1}^T R_{i+j}))`.

    Knots are uniform. A time in segment `i`, `start_ns + i step_ns <= t < start_ns + (i + 1) step_ns`, with
    `u = (t - start_ns) / step_ns - i`, follows the `order` control rotations `i, ..., i + order - 1` and no others.
    `K` control rotations make `K - order + 1` segments, so the spline covers `start_ns` to
    `end_ns = start_ns + (K - order + 1) step_ns`, both included (the end belongs to the last segment, `u = 1`).

    Control rotation `k` has its place at `start_ns + k step_ns` in a linear spline, which passes through it, and at
    `start_ns + (k - 1) step_ns` in a cubic one, which passes near it and is twice continuously differentiable. Control
    rotations that lie in their places on a motion of constant body rate reproduce that motion, for both orders. A
    cubic spline approximates other motions with the fourth power of the step about one axis, and with the third power
    where the axis changes, as the factors of the product do not commute.

    Neighbouring control rotations may be up to half a turn apart (the short way is taken); the rotation as a whole
    may be anything, as in a camera that turns on and on.

    Attributes
    ----------
    order : int
        2 (linear) or 4 (cubic).
    start_ns, step_ns : int
        First covered time, and time between knots, in nanoseconds.
    quaternions_xyzw : (K, 4) float64
        Control rotations as unit quaternions, `K >= order`; normalised on construction.
    """

    order: int
    start_ns: int
    step_ns: int
    quaternions_xyzw: FloatArray

    def __post_init__(self) -> None:
        quaternions = np.ascontiguousarray(self.quaternions_xyzw, np.float64)
        if self.order not in ORDERS:
            raise TrajectoryError(f"a spline has order 2 (linear) or 4 (cubic), not {self.order}")
        if self.step_ns <= 0:
            raise TrajectoryError(f"the time between the knots of a spline must be positive, not {self.step_ns} ns")
        if quaternions.ndim != 2 or quaternions.shape[1] != 4:
            raise TypeError(f"control rotations are quaternions (K, 4), not an array {quaternions.shape}")
        if len(quaternions) < self.order:
            raise TrajectoryError(
                f"a {ORDERS[self.order]} spline needs at least {self.order} control rotations, not {len(quaternions)}"
            )
        norms = np.linalg.norm(quaternions, axis=1)
        if not (np.abs(norms - 1) < 1e-2).all():
            place = int(np.argmax(~(np.abs(norms - 1) < 1e-2)))
            raise TrajectoryError(
                f"control rotation {place} is the quaternion {quaternions[place].tolist()}, which is not of unit length"
            )
        norms[np.abs(norms - 1) < 1e-15] = 1  # what is normalised already keeps its bits
        object.__setattr__(self, "start_ns", int(self.start_ns))
        object.__setattr__(self, "step_ns", int(self.step_ns))
        object.__setattr__(self, "quaternions_xyzw", quaternions / norms[:, None])

    def __len__(self) -> int:
        """Return the number `K` of control rotations."""
        return len(self.quaternions_xyzw)

    @property
    def end_ns(self) -> int:
        """Last covered time."""
        return self.start_ns + (len(self) - self.order + 1) * self.step_ns

    def covers(self, t_ns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which of the times the spline has a value at."""
        t = as_nanoseconds(t_ns)
        return (t >= self.start_ns) & (t <= self.end_ns)

    def quaternions_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` at a time or times as unit quaternions `xyzw` (..., 4)."""
        return self._evaluate(t_ns, "quaternions")[1][0]

    def rotations_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` at a time or times as matrices (..., 3, 3)."""
        return self._evaluate(t_ns, "rotations")[1][0]

    def angular_velocities_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return the body-frame angular velocity (..., 3) in rad/s: `R(t + dt) = R(t) exp(omega dt)`.

        That of a linear spline is constant in each segment and jumps at the knots.
        """
        return self._evaluate(t_ns, "rates")[1][0]

    def jacobians_at(self, t_ns: npt.ArrayLike) -> SplineJacobians:
        """Return how the value at a time or times turns where control rotations turn, both on the left."""
        first, [jacobians] = self._evaluate(t_ns, "jacobians")
        return SplineJacobians(first, jacobians)

    def angle_to(self, other: RotationSpline, t_ns: int) -> float:
        """Return the angle between two trajectories at a time, in radians."""
        product = abs(float(self.quaternions_at(t_ns) @ other.quaternions_at(t_ns)))
        return float(2 * np.arccos(min(product, 1.0)))

    def part(self, first: int, count: int) -> RotationSpline:
        """Return the spline of `count` control rotations from index `first` on; its values are the same bits."""
        if first < 0 or count < self.order or first + count > len(self):
            raise TrajectoryError(f"control rotations {first} to {first + count} are no part of {len(self)}")
        start_ns = self.start_ns + first * self.step_ns
        return replace(self, start_ns=start_ns, quaternions_xyzw=self.quaternions_xyzw[first : first + count])

    def with_perturbation(self, first: int, deltas_rad: npt.ArrayLike) -> RotationSpline:
        """Return the spline with control rotations turned on the left, `R_k <- exp(delta_k) R_k`.

        `deltas_rad` (M, 3) belong to the control rotations `first, ..., first + M - 1`.
        """
        deltas = np.ascontiguousarray(deltas_rad, np.float64).reshape(-1, 3)
        if first < 0 or first + len(deltas) > len(self):
            raise TrajectoryError(f"control rotations {first} to {first + len(deltas)} are no part of {len(self)}")
        quaternions = self.quaternions_xyzw.copy()
        spline_kernels.perturb(quaternions, first, deltas)
        return replace(self, quaternions_xyzw=quaternions)

    def _evaluate(self, t_ns: npt.ArrayLike, *wanted: str) -> tuple[npt.NDArray[np.int64], list[FloatArray]]:
        """Return the first control rotation of each time, and the wanted outputs in the order of their names."""
        times = as_nanoseconds(t_ns)
        if not self.covers(times).all():
            raise TrajectoryError(
                f"times {times.min()} to {times.max()} ns reach outside the spline, "
                f"which covers {self.start_ns} to {self.end_ns} ns"
            )
        flat = np.ascontiguousarray(times.ravel())
        first = np.empty(len(flat), np.int64)
        shapes = {"quaternions": (4,), "rotations": (3, 3), "rates": (3,), "jacobians": (self.order, 3, 3)}
        outputs = {name: np.empty((len(flat) if name in wanted else 0, *shape)) for name, shape in shapes.items()}
        spline_kernels.evaluate(
            self.order, self.quaternions_xyzw, self.start_ns, self.step_ns, flat, first, *outputs.values()
        )
        return first.reshape(times.shape), [outputs[name].reshape(*times.shape, *shapes[name]) for name in wanted]
