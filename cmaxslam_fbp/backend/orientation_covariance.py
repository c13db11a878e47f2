"""How uncertain the orientation of an adjusted window is."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.backend.window_objective import WindowObjective
from cmaxslam_fbp.contrast.solvers.newton_kernels import make_positive
from cmaxslam_fbp.trajectory.spline import RotationSpline

_FLAT = 1e-4  # directions this much less steep than the steepest one count as that steep
SCALE = 1.0
FLOOR_RAD = 0.0


def orientation_covariance(
    objective: WindowObjective, spline: RotationSpline, first_free: int, t_ns: int
) -> FloatArray:
    """Return the covariance (3, 3) in rad^2 of the orientation at a time, for turns in the body frame."""
    still = np.zeros(3 * (len(spline) - first_free))
    _, inverse, _ = make_positive(-objective.hessian(still), _FLAT)
    of_turns = inverse @ objective.gradient_scatter(still) @ inverse
    first, jacobians = spline.jacobians_at(t_ns)
    along = np.zeros((3, len(spline), 3))
    along[:, int(first) : int(first) + spline.order] = jacobians.transpose(1, 0, 2)
    J = spline.rotations_at(t_ns).T @ along[:, first_free:].reshape(3, -1)
    covariance = SCALE**2 * J @ of_turns @ J.T + FLOOR_RAD**2 * np.eye(3)
    return np.asarray(0.5 * (covariance + covariance.T), np.float64)
