"""How uncertain the orientation of an adjusted window is."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.backend.window_objective import WindowObjective
from cmaxslam_fbp.contrast.solvers.newton_kernels import make_positive
from cmaxslam_fbp.trajectory.spline import RotationSpline

_FLAT = 1e-4  # directions this much less steep than the steepest one count as that steep

# Chosen by maximum likelihood on simulated recordings with ideal and with realistic pixels; docs/backend.md has the
# check on others.
_NOISE_SCALE = 3.6  # events of one edge are not independent of each other, and the map has noise of its own
_MAP_ERROR_PX = 0.035  # of the panorama
_TIME_ERROR_S = 2.5e-4  # by which the trajectory lags or leads


def orientation_covariance(
    objective: WindowObjective, spline: RotationSpline, first_free: int, t_ns: int, focal_px: float
) -> FloatArray:
    """Return the covariance (3, 3) in rad^2 of the orientation at a time, for turns `R exp(phi)` in the body frame.

    `s^2 J H^-1 G H^-1 J^T + b^2 I + tau^2 omega omega^T`: the spread of the maximum, whose gradient has the covariance
    `G` of independent events, with `J` from the control rotations to the body at the time; an error of the map; and one
    of time, which turns the body at its rate. It is meant for the errors that are left where the world frame fits best.

    Parameters
    ----------
    objective : of the window, at its adjusted trajectory
    spline : that trajectory; its control rotations from `first_free` on are free
    t_ns : the time
    focal_px : pixels of the panorama per radian
    """
    still = np.zeros(3 * (len(spline) - first_free))
    _, inverse, _ = make_positive(-objective.hessian(still), _FLAT)
    of_turns = inverse @ objective.gradient_scatter(still) @ inverse
    first, jacobians = spline.jacobians_at(t_ns)
    by_control = np.zeros((3, len(spline), 3))
    by_control[:, int(first) : int(first) + spline.order] = jacobians.transpose(1, 0, 2)
    J = spline.rotations_at(t_ns).T @ by_control[:, first_free:].reshape(3, -1)
    omega = spline.angular_velocities_at(t_ns)
    covariance = _NOISE_SCALE**2 * J @ of_turns @ J.T
    covariance += (_MAP_ERROR_PX / focal_px) ** 2 * np.eye(3) + _TIME_ERROR_S**2 * np.outer(omega, omega)
    return np.asarray(0.5 * (covariance + covariance.T), np.float64)
