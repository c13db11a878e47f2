"""Errors of orientations in units of their own standard deviations."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.evaluation.alignment import align_best_fit
from cmaxslam_fbp.geometry.rotation import Rotation


def normalised_errors_squared(ground_truth: Rotation, estimate: Rotation, covariances: FloatArray) -> FloatArray:
    """Return `e^T Sigma^-1 e` (N,) of the errors `e = log((A R_est)^T R_gt)` with the `A` of the best fit.

    The covariances `Sigma` (N, 3, 3) in rad^2 are those of turns in the body frame. Where they are right, the errors
    squared are 3 in the mean.
    """
    alignment, _ = align_best_fit(ground_truth, estimate)
    errors = ((alignment * estimate).inv() * ground_truth).as_rotvec()
    solved = np.linalg.solve(covariances, errors[:, :, None])[:, :, 0]
    return np.asarray((errors * solved).sum(axis=1), np.float64)
