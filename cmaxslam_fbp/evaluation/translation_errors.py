"""Errors of a translation: of positions, after the similarity that fits best, and of linear velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.trajectory import RotationTrajectory

_AT_REST_M = 1e-9


@dataclass(frozen=True)
class PositionErrors:
    """What is left after `p_gt ~ s A p + b`, with the best scale `s`, rotation `A` and shift `b`.

    Attributes
    ----------
    rms_m : float
        RMS distance.
    path_rms_m : float
        RMS distance of the reference from its mean: the error of a camera that is said to rest.
    scale : float
        `s`, metres per unit of the estimate.
    """

    rms_m: float
    path_rms_m: float
    scale: float


def position_errors(estimate: RotationTrajectory, ground_truth: RotationTrajectory) -> PositionErrors | None:
    """Compare positions at the estimate's times, all within the ground truth; None where either has none or rests."""
    if estimate.positions_m is None or ground_truth.positions_m is None:
        return None
    t = (estimate.t_ns - ground_truth.start_ns).astype(np.float64)
    known = (ground_truth.t_ns - ground_truth.start_ns).astype(np.float64)
    truth = np.stack([np.interp(t, known, axis) for axis in ground_truth.positions_m.T], axis=1)
    truth, path = truth - truth.mean(axis=0), estimate.positions_m - estimate.positions_m.mean(axis=0)
    extent, own = _rms(truth), _rms(path)
    if extent < _AT_REST_M or own < _AT_REST_M:
        return None
    # Umeyama (1991): the rotation from the singular vectors of the covariance, a reflection excluded.
    u, values, vt = np.linalg.svd(truth.T @ path / len(path))
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    scale = float((values * signs).sum() / own**2)
    rotation = (u * signs) @ vt
    return PositionErrors(_rms(truth - scale * path @ rotation.T), extent, scale)


def _rms(vectors: FloatArray) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))


@dataclass(frozen=True)
class LinearVelocityErrors:
    """Differences of N linear velocities from those of the reference poses, in the camera's frame.

    Attributes
    ----------
    count : int
        Number of times compared.
    rms_m_s, rms_per_axis_m_s : float
        `sqrt(mean |d|^2)`, and root of the mean over times and axes as in the paper's tables, for a scene at one metre.
    depth_m : float
        The depth of the scene for which the estimates fit best.
    rms_at_depth_m_s : float
        `sqrt(mean |d|^2)` of the estimates times that depth.
    """

    count: int
    rms_m_s: float
    rms_per_axis_m_s: float
    depth_m: float
    rms_at_depth_m_s: float


def camera_velocities(poses: RotationTrajectory, t_ns: IntArray) -> FloatArray:
    """Return `R_wc^T dp/dt` (N, 3) in m/s, from a cubic spline through the positions."""
    from scipy.interpolate import CubicSpline

    if poses.positions_m is None:
        raise ValueError("the poses have no positions")
    origin = poses.t_ns[0]
    curve = CubicSpline((poses.t_ns - origin) * 1e-9, poses.positions_m, axis=0)
    world = np.asarray(curve((t_ns - origin) * 1e-9, 1))
    return np.asarray(poses.rotation_at(t_ns).inv().apply(world))


def linear_velocity_errors(
    t_ns: IntArray, velocities_m_s: FloatArray, poses: RotationTrajectory
) -> LinearVelocityErrors | None:
    """Compare velocities (N, 3) with the poses where these cover their times (N,).

    None where they cover none of them, or have no positions.
    """
    covered = (t_ns >= poses.t_ns[0]) & (t_ns <= poses.t_ns[-1])
    if poses.positions_m is None or not covered.any():
        return None
    found = velocities_m_s[covered]
    true = camera_velocities(poses, t_ns[covered])
    power = float((found**2).sum())
    depth = float((found * true).sum()) / power if power else 1.0
    squares = ((found - true) ** 2).sum(axis=1)
    return LinearVelocityErrors(
        count=int(covered.sum()),
        rms_m_s=float(np.sqrt(squares.mean())),
        rms_per_axis_m_s=float(np.sqrt(squares.mean() / 3)),
        depth_m=depth,
        rms_at_depth_m_s=float(np.sqrt(((depth * found - true) ** 2).sum(axis=1).mean())),
    )
