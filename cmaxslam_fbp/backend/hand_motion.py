"""The motion of a hand-held camera and the distances of its scene: the parameters of their joint adjustment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.backend.scene_distances import SceneDistances
from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory.position_spline import PositionSpline, weights_at
from cmaxslam_fbp.trajectory.spline import RotationSpline

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FARTHEST = 0.35  # from the map's centre, in mean scene distances; what is nearer to the scene than that it leaves
_NEARLY = 0.99
_HELD = 1e16  # curvature by which a control stays where it is
_AROUND_NS = 200_000_000  # the time on either side over which a motion is as lively


@dataclass(frozen=True)
class HandState:
    """Where a camera was and what it saw: `R_wc(t)`, `c(t)` in mean scene distances, and log distances."""

    rotations: RotationSpline
    positions: PositionSpline
    coefficients: FloatArray


@dataclass(frozen=True)
class Priors:
    """What is known of hands and rooms: how large deviations usually are.

    Where a hand turns a camera fast, it moves it fast, and where it rests both rest: what is usual goes with the
    second difference of the rotation from knot to knot around that time.

    Attributes
    ----------
    turns : float
        By how much, as a share of it, a second difference of the correction `delta'` is.
    positions : float
        By how much that of the position is, in mean scene distances per radian: about the lever of the hand.
    reach : float
        How far from the map's centre the camera is, in mean scene distances.
    rest_rad : float
        The least second difference that is taken as usual.
    distances : float
        Relative deviation of the distances from those of a sphere.
    weight : float
        In events.
    """

    turns: float = 0.1
    positions: float = 0.15
    reach: float = 0.1
    rest_rad: float = 5e-4
    distances: float = 0.3
    weight: float = 10.0

    def strength(self, share: float, rotations: RotationSpline, t_ns: IntArray) -> FloatArray:
        """Return `weight / (share r)^2` (T - 2,), with the usual second difference `r` of rotations at times (T,).

        `r` in radians is the RMS over the time around each of them.
        """
        covered = np.clip(t_ns, rotations.start_ns, rotations.end_ns)  # longer knots of positions may end later
        turned = Rotation.from_quat(rotations.quaternions_at(covered))
        steps = turned[1:].as_matrix() @ turned[:-1].as_matrix().transpose(0, 2, 1)
        differences = np.diff(Rotation.from_matrix(steps).as_rotvec(), axis=0)
        reach = max(round(_AROUND_NS * len(t_ns) / max(int(t_ns[-1] - t_ns[0]), 1)), 1)
        window = np.ones(2 * reach + 1) / (2 * reach + 1)
        squares = np.convolve(np.pad((differences**2).sum(axis=1), reach, mode="edge"), window, mode="valid")
        usual = np.sqrt(squares + self.rest_rad**2)
        return np.asarray(self.weight / (share * usual) ** 2)


class Whitening:
    """Parameters `y` of controls `x = L^-T y` (K, 3), with `A = L L^T` the expected curvature of the objective.

    `A = diag(data) + D^T diag(strengths) D`, with the second difference `D`: by `y` the objective curves alike in all
    directions, so that an optimiser which knows no curvature at first makes good steps.
    """

    def __init__(self, data: FloatArray, strengths: FloatArray) -> None:
        from scipy.linalg import cholesky_banded
        from scipy.linalg.lapack import dtbtrs

        self._solve = dtbtrs
        band = np.zeros((3, len(data)))  # the upper triangle, as `cholesky_banded` takes it
        band[2] = data
        for i, one in enumerate((1.0, -2.0, 1.0)):
            for j, other in enumerate((1.0, -2.0, 1.0)[i:], start=i):
                band[2 - (j - i), j : j + len(strengths)] += one * other * strengths
        self._band = cholesky_banded(band)  # L^T

    def expand(self, y: FloatArray) -> FloatArray:
        """Return `L^-T y` (K, 3)."""
        return np.asarray(self._solve(self._band, y.reshape(-1, 3), uplo="U", trans="N")[0])

    def pull(self, by_x: FloatArray) -> FloatArray:
        """Return `L^-1 g` (3 K,)."""
        return np.asarray(self._solve(self._band, by_x, uplo="U", trans="T")[0].reshape(-1))


class HandMotion:
    """`theta = (delta', c, s)` about a start: turns (K, 3), control positions (L, 3), coefficients of distances (J,).

    A small translation looks like a turn, but for the borders of the image: rotation and translation trade along a
    narrow ridge. So parameters are compensated: the control rotation `exp(delta_k) R_k` has
    `delta_k = delta'_k - rho_k f_k x (c - c0)(t_k)`, with the optical axis `f_k` and its inverse distance `rho_k`.
    A change of `c` alone then leaves the middle of the image where it is. Control positions are bounded, see `bound`,
    and then centred: their mean, weighted by events, is zero. This gauge also forbids the one motion that could draw
    all views together, a camera that is always behind its place. Where the first controls are held, they and the map of
    what was before fix the gauge instead.

    Parameters
    ----------
    start : the state at `theta = 0`
    distances : what the coefficients stand for
    axis_inverse : (K,) inverse distances along the optical axes of the control rotations
    priors : what is usual
    curvatures : of the score: by a turn of each control rotation (K,), a move of each control position (L,), and a
        relative change of the distances
    held : how many of the first controls, of rotations and of positions, stay: the time before depends on them
    """

    def __init__(
        self,
        start: HandState,
        distances: SceneDistances,
        axis_inverse: FloatArray,
        priors: Priors,
        curvatures: tuple[FloatArray, FloatArray, float],
        held: int = 0,
    ) -> None:
        self._start, self._distances = start, distances
        rotations, positions = start.rotations, start.positions
        self.turn_strength = priors.strength(priors.turns, rotations, control_times(rotations))
        self.position_strength = priors.strength(priors.positions, rotations, control_times(positions))
        self.reach_strength = priors.weight / priors.reach**2
        by_turn, by_move = curvatures[0].copy(), curvatures[1] + self.reach_strength
        by_turn[:held] = by_move[:held] = _HELD
        self._white_turns = Whitening(by_turn, self.turn_strength)
        self._white_moves = Whitening(by_move, self.position_strength)
        self._unit = 1 / np.sqrt(curvatures[2])
        self._shares = np.zeros(len(by_move)) if held else curvatures[1] / curvatures[1].sum()
        self._raw = stretch(start.positions.controls)
        self._turns, self._moves = 3 * len(start.rotations), 3 * len(start.positions)
        self._axes = axis_inverse[:, None] * optical_axes(start.rotations)
        self._axes[:held] = 0
        self._at_controls = _interpolation(start.positions, control_times(start.rotations))
        self.parameter_count = self._turns + self._moves + distances.parameter_count

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return `delta'` (K, 3), the control positions before they are bounded (L, 3) and the coefficients (J,)."""
        turns, moves, changes = np.split(theta, [self._turns, self._turns + self._moves])
        raw = self._raw + self._white_moves.expand(moves)
        return self._white_turns.expand(turns), raw, self._start.coefficients + changes * self._unit

    def _deltas(self, turns: FloatArray, controls: FloatArray) -> FloatArray:
        """Return `delta` (K, 3)."""
        moves = controls - self._start.positions.controls
        return np.asarray(turns - np.cross(self._axes, self._at_controls @ moves))

    def state(self, theta: FloatArray) -> HandState:
        """Return the motion and the distances of a `theta`."""
        turns, raw, coefficients = self.split(theta)
        start, controls = self._start, bound(raw)
        controls -= self._shares @ controls
        rotations = start.rotations.with_perturbation(0, self._deltas(turns, controls))
        return HandState(rotations, replace(start.positions, controls=controls), coefficients)

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
        turned = np.zeros((len(state.rotations), 3))
        for j in range(jacobians.shape[1]):
            _add_at(turned, first + j, np.einsum("tji,tj->ti", jacobians[:, j], by_turn))
        first, weights = weights_at(state.positions, t_ns)
        moved = np.zeros((len(state.positions), 3))
        for j in range(weights.shape[1]):
            _add_at(moved, first + j, weights[:, j, None] * by_position)
        deltas = self._deltas(self.split(theta)[0], state.positions.controls)
        by_delta = np.einsum("kji,kj->ki", so3.left_jacobian(deltas), turned)
        moved += self._at_controls.T @ np.cross(self._axes, by_delta)
        return self.pull(theta, by_delta, moved, self._distances.gradient(state.coefficients, by_table))

    def pull(
        self, theta: FloatArray, by_turns: FloatArray, by_controls: FloatArray, by_coefficients: FloatArray
    ) -> FloatArray:
        """Return the gradient by `theta` from those by `delta'`, by control positions and by coefficients."""
        centred = by_controls - self._shares[:, None] * by_controls.sum(axis=0)
        by_moves = bound_transposed(bound(self.split(theta)[1]), centred)
        return np.concatenate(
            [
                self._white_turns.pull(by_turns),
                self._white_moves.pull(by_moves),
                by_coefficients * self._unit,
            ]
        )


def bound(raw: FloatArray) -> FloatArray:
    """Return positions `c = u / sqrt(1 + |u|^2 / m^2)` (L, 3), all shorter than `m`: a camera stays in its room."""
    return np.asarray(raw / np.sqrt(1 + (raw**2).sum(axis=1, keepdims=True) / FARTHEST**2))


def bound_transposed(bounded: FloatArray, by_bounded: FloatArray) -> FloatArray:
    """Return the gradient by `u` (L, 3) from that by `c`: `dc = (du - c (c.du) / m^2) / sqrt(1 + |u|^2 / m^2)`."""
    shares = (bounded**2).sum(axis=1, keepdims=True) / FARTHEST**2
    along = (bounded * by_bounded).sum(axis=1, keepdims=True) / FARTHEST**2
    return np.asarray(np.sqrt(1 - shares) * (by_bounded - along * bounded))


def stretch(bounded: FloatArray) -> FloatArray:
    """Return the `u` of positions `c`, the inverse of `bound`."""
    shares = np.minimum((bounded**2).sum(axis=1, keepdims=True) / FARTHEST**2, _NEARLY)
    return np.asarray(bounded / np.sqrt(1 - shares))


def second_difference_transposed(differences: FloatArray) -> FloatArray:
    """Return the transpose of the second difference, of rows (K - 2, 3): (K, 3)."""
    sums = np.zeros((len(differences) + 2, 3))
    sums[:-2] += differences
    sums[1:-1] -= 2 * differences
    sums[2:] += differences
    return sums


def control_times(spline: RotationSpline | PositionSpline) -> IntArray:
    """Return the places (K,) of the controls of a spline, kept within the time that the spline covers."""
    places = spline.start_ns + (np.arange(len(spline)) - (spline.order // 2 - 1)) * spline.step_ns
    return np.clip(places, spline.start_ns, spline.end_ns)


def optical_axes(spline: RotationSpline) -> FloatArray:
    """Return the directions (K, 3) that the control rotations look in."""
    return np.asarray(Rotation.from_quat(spline.quaternions_xyzw).as_matrix()[:, :, 2])


def _interpolation(positions: PositionSpline, t_ns: IntArray) -> csr_array:
    """Return the sparse matrix (T, K) that takes control positions to positions at times."""
    from scipy.sparse import csr_array

    first, weights = weights_at(positions, t_ns)
    columns = first[:, None] + np.arange(positions.order)
    rows = np.broadcast_to(np.arange(len(t_ns))[:, None], columns.shape)
    return csr_array((weights.ravel(), (rows.ravel(), columns.ravel())), shape=(len(t_ns), len(positions)))


def _add_at(sums: FloatArray, places: IntArray, values: FloatArray) -> None:
    """Add rows (T, 3) to places of `sums` (K, 3)."""
    for axis in range(3):
        sums[:, axis] += np.bincount(places, values[:, axis], minlength=len(sums))
