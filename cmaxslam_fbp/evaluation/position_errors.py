"""Errors of positions, whose origin, axes and unit the estimate cannot know: after the best-fitting similarity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
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
