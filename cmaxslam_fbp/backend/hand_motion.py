"""The motion of a hand-held camera and the distances of its scene: the parameters of their joint adjustment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.backend.scene_distances import SceneDistances
from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.trajectory.position_spline import PositionSpline
from cmaxslam_fbp.trajectory.spline import RotationSpline


@dataclass(frozen=True)
class HandState:
    """Where a camera was and what it saw: `R_wc(t)`, `c(t)` in mean scene distances, and log distances."""

    rotations: RotationSpline
    positions: PositionSpline
    coefficients: FloatArray


@dataclass(frozen=True)
class Units:
    """Sizes of steps that change the score about as much: scales of the three kinds of parameters.

    Attributes
    ----------
    turns, positions : (K,)
        In radians, and in mean scene distances.
    distances : float
        Relative.
    """

    turns: FloatArray
    positions: FloatArray
    distances: float


class HandMotion:
    """`theta = (delta', c, s)` about a start: turns (K, 3), control positions (K, 3), coefficients of distances (J,).

    A small translation looks like a turn, but for the borders of the image: rotation and translation trade along a
    narrow ridge. So parameters are compensated: the control rotation `exp(delta_k) R_k` has
    `delta_k = delta'_k - rho_k f_k x (c_k - c0_k)`, with the optical axis `f_k` and the inverse distance `rho_k` there.
    A change of `c` alone then leaves the middle of the image where it is. The mean of the control positions is zero.

    Parameters
    ----------
    start : the state at `theta = 0`
    distances : what the coefficients stand for
    axis_inverse : (K,) inverse distances along the optical axes of the control rotations
    units : scales
    """

    def __init__(self, start: HandState, distances: SceneDistances, axis_inverse: FloatArray, units: Units) -> None:
        self._start, self._distances, self._units = start, distances, units
        count = len(start.rotations)
        self._count = count
        matrices = start.rotations  # control rotations themselves
        from scipy.spatial.transform import Rotation

        self._axes = axis_inverse[:, None] * Rotation.from_quat(matrices.quaternions_xyzw).as_matrix()[:, :, 2]
        self.parameter_count = 6 * count + distances.parameter_count

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `delta'` (K, 3), the change of `c` (K, 3) and that of the coefficients (J,)."""
        count, units = self._count, self._units
        turns = theta[: 3 * count].reshape(-1, 3) * units.turns[:, None]
        moves = theta[3 * count : 6 * count].reshape(-1, 3) * units.positions[:, None]
        return turns, moves - moves.mean(axis=0), theta[6 * count :] * units.distances

    def state(self, theta: FloatArray) -> HandState:
        """Return the motion and the distances of a `theta`."""
        turns, moves, changes = self.split(theta)
        start = self._start
        return HandState(
            start.rotations.with_perturbation(0, turns - np.cross(self._axes, moves)),
            replace(start.positions, controls=start.positions.controls + moves),
            start.coefficients + changes,
        )

    def gradient(
        self,
        theta: FloatArray,
        state: HandState,
        t_ns: IntArray,
        by_turn: FloatArray,
        by_position: FloatArray,
        by_table: FloatArray,
    ) -> FloatArray:
        """Return the gradient by `theta` from those by turns and positions (T, 3) at times (T,), and by the table."""
        first, jacobians = state.rotations.jacobians_at(t_ns)
        _, weights = state.positions.weights_at(t_ns)
        turned, moved = np.zeros((self._count, 3)), np.zeros((self._count, 3))
        for j in range(jacobians.shape[1]):
            _add_at(turned, first + j, np.einsum("tji,tj->ti", jacobians[:, j], by_turn))
            _add_at(moved, first + j, weights[:, j, None] * by_position)
        turns, moves, _ = self.split(theta)
        delta = turns - np.cross(self._axes, moves)
        by_delta = np.einsum("kji,kj->ki", so3.left_jacobian(delta), turned)
        return self.pull(by_delta, moved + np.cross(self._axes, by_delta), self._distances.gradient(state.coefficients, by_table))

    def pull(self, by_turns: FloatArray, by_moves: FloatArray, by_coefficients: FloatArray) -> FloatArray:
        """Return the gradient by `theta` from those by the three values of `split`."""
        by_moves = by_moves - by_moves.mean(axis=0)
        return np.concatenate(
            [
                (by_turns * self._units.turns[:, None]).reshape(-1),
                (by_moves * self._units.positions[:, None]).reshape(-1),
                by_coefficients * self._units.distances,
            ]
        )


def _add_at(sums: FloatArray, places: IntArray, values: FloatArray) -> None:
    """Add rows (T, 3) to places of `sums` (K, 3)."""
    for axis in range(3):
        sums[:, axis] += np.bincount(places, values[:, axis], minlength=len(sums))
