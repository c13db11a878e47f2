"""How the camera's motion must change with its lens, so that what is seen at one time goes on agreeing."""

from __future__ import annotations

import numpy as np
from scipy.integrate import cumulative_trapezoid

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.calibration.bearing_grid import LensView
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory.spline import RotationSpline


def compensating_turns(view: LensView, spline: RotationSpline, t_ns: IntArray, edges_ns: IntArray) -> FloatArray:
    """Return the left turns (P, T, 3) of the rotations at times (T,) that go with a unit of each parameter.

    Lens and motion trade along narrow ridges: a longer focal length looks like a slower rotation, another principal
    point like a camera that looks elsewhere. On the left of `R` the turns and rates of `compensating_rates` are
    `R q + int R M omega dt`.
    """
    turns, rates_by_rates = compensating_rates(view)
    rotations, rates = spline.rotations_at(edges_ns), spline.angular_velocities_at(edges_ns)
    t_s, edges_s = (t_ns - edges_ns[0]) / NS_PER_S, (edges_ns - edges_ns[0]) / NS_PER_S
    turned = spline.rotations_at(t_ns)
    left = np.empty((len(turns), len(t_ns), 3))
    for j, (q, M) in enumerate(zip(turns, rates_by_rates, strict=True)):
        grown = cumulative_trapezoid(np.einsum("tij,jk,tk->ti", rotations, M, rates), edges_s, axis=0, initial=0)
        grown -= grown[len(grown) // 2]
        left[j] = turned @ q + np.stack([np.interp(t_s, edges_s, grown[:, axis]) for axis in range(3)], axis=1)
    return left


def compensating_rates(view: LensView) -> tuple[FloatArray, FloatArray]:
    """Return what a unit of each parameter asks of the camera: turns `q` (P, 3), and `M` (P, 3, 3) of rates `M omega`.

    A parameter moves the directions `b` by a field `J(b)`. The turn `q` of the camera that undoes most of it,
    `J ~ -q x b`, leaves `J' = J + q x b`. A point at rest in the world moves by `-omega x b`, so `J'` smears it unless
    the rate changes by `m` with `m x b ~ DJ'[omega x b] - omega x J'`, both in the least-squares sense over the image;
    `m = M omega`.
    """
    rays, seen = view.rays, view.seen & _inside(view.seen)
    b = rays[seen]
    spread = len(b) * np.eye(3) - b.T @ b
    along = [np.gradient(rays, axis=axis)[seen] for axis in (0, 1)]
    gram = np.array([[np.einsum("ni,ni->n", u, v) for v in along] for u in along]).transpose(2, 0, 1)
    count = view.jacobian.shape[-1]
    turns, rates_by_rates = np.empty((count, 3)), np.empty((count, 3, 3))
    for j in range(count):
        field = view.jacobian[..., j]
        turns[j] = -_turn_of(b, field[seen], spread)
        left = field + np.cross(turns[j], rays)
        slopes = [np.gradient(left, axis=axis)[seen] for axis in (0, 1)]
        for axis, unit in enumerate(np.eye(3)):
            moved = np.cross(unit, b)
            steps = np.linalg.solve(gram, np.stack([np.einsum("ni,ni->n", u, moved) for u in along], axis=1)[..., None])
            carried = steps[:, 0] * slopes[0] + steps[:, 1] * slopes[1]
            rates_by_rates[j, :, axis] = _turn_of(b, carried - np.cross(unit, left[seen]), spread)
    return turns, rates_by_rates


def _turn_of(b: FloatArray, field: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the turn `m` (3,) with `m x b ~ field` over directions (N, 3): `sum (1 - b b^T) m = sum b x field`."""
    return np.asarray(np.linalg.solve(spread, np.cross(b, field).sum(axis=0)))


def _inside(seen: np.ndarray) -> np.ndarray:
    """Return which nodes (n, m) have neighbours that are all seen: where differences mean something."""
    padded = np.pad(seen, 1, constant_values=True)
    return padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
