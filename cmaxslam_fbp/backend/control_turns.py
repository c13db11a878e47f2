"""Turns of the control rotations of a window: the parameters of its adjustment, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.trajectory.spline import RotationSpline


class ControlTurns:
    """`delta` (3 M,) turns the free control rotations on the left, `R_k <- exp(delta_k) R_k`, at a cost.

    The cost `lambda/2 sum_k |delta_k - delta_{k-1}|^2` holds on to the motion from one control rotation to the next
    that the start has; the turn of a control rotation that is not free is zero.

    Parameters
    ----------
    spline : the trajectory at `delta = 0`
    first_free : index of the first free control rotation
    prior : `lambda`
    held : number of control rotations at the end that are not free
    """

    def __init__(self, spline: RotationSpline, first_free: int, prior: float, held: int = 0) -> None:
        self._spline, self._first_free = spline, first_free
        self._free = slice(first_free, len(spline) - held)
        self._prior = prior * _chain(len(spline) - held - first_free, first_free > 0, held > 0)
        self.parameter_count = len(self._prior)  # of `delta`

    def spline_at(self, delta: FloatArray) -> RotationSpline:
        """Return the trajectory of a `delta`."""
        return self._spline.with_perturbation(self._first_free, delta.reshape(-1, 3))

    def cost(self, delta: FloatArray) -> float:
        """Return the cost of a `delta`."""
        return 0.5 * float(delta @ self._prior @ delta)

    def gradient(self, delta: FloatArray, spline: RotationSpline, t_ns: IntArray, by_time: FloatArray) -> FloatArray:
        """Return the gradient (3 M,) from that for left turns of the trajectory at times, less that of the cost.

        `sum_n J_k(t_n)^T g_n` is the gradient for left turns of control rotation `k`; that for its `delta_k` follows
        from `exp(delta + d) = exp(J_l(delta) d) exp(delta)`.

        Parameters
        ----------
        delta : (3 M,)
        spline : the trajectory of `delta`
        t_ns : (T,) times in order
        by_time : (T, 3) gradients `g_n` for the turns `exp(phi_n) R(t_n)`
        """
        first, jacobians = spline.jacobians_at(t_ns)
        by_control = np.zeros((len(spline), 3))
        for k, part in _sums_per_interval(first, (by_time[:, None, None] @ jacobians)[:, :, 0]):
            by_control[k : k + len(part)] += part
        turns = so3.left_jacobian(delta.reshape(-1, 3))
        by_delta = by_control[self._free, None] @ turns
        return np.asarray(by_delta.reshape(-1) - self._prior @ delta, np.float64)

    def hessian(
        self, spline: RotationSpline, t_ns: IntArray, by_time: FloatArray, *, with_cost: bool = True
    ) -> FloatArray:
        """Return `sum_n J_j(t_n)^T C_n J_k(t_n)` (3 M, 3 M) for curvatures `C_n` (T, 3, 3), less the cost's or not."""
        first, jacobians = spline.jacobians_at(t_ns)
        blocks = np.zeros((len(spline), len(spline), 3, 3))
        curved = jacobians.transpose(0, 1, 3, 2)[:, :, None] @ (by_time[:, None] @ jacobians)[:, None]
        for k, part in _sums_per_interval(first, curved):
            blocks[k : k + len(part), k : k + len(part)] += part
        free = blocks[self._free, self._free]
        whole = free.transpose(0, 2, 1, 3).reshape(self._prior.shape)
        return np.asarray(whole - self._prior if with_cost else whole, np.float64)


def _sums_per_interval(first: IntArray, values: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first control rotation of each interval of the spline that has times, and the sum of their values."""
    starts = np.flatnonzero(np.diff(first, prepend=-1))
    yield from zip(first[starts].tolist(), np.add.reduceat(values, starts), strict=True)


def _chain(count: int, is_fixed_before: bool, is_fixed_after: bool) -> FloatArray:
    """Return the matrix (3 M, 3 M) of `sum_k |delta_k - delta_{k-1}|^2`, with zeros before and after where fixed."""
    steps = np.eye(count + 1, count) - np.eye(count + 1, count, k=-1)
    steps = steps[0 if is_fixed_before else 1 : count + 1 if is_fixed_after else count]
    return np.asarray(np.kron(steps.T @ steps, np.eye(3)), np.float64)
