"""How uncertain the orientation of an adjusted window is."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.backend.window_objective import WindowObjective
from cmaxslam_fbp.contrast.solvers.newton_kernels import make_positive
from cmaxslam_fbp.trajectory.spline import RotationSpline

_FLAT = 1e-4  # directions this much less steep than the steepest one count as that steep

# Chosen on simulated recordings with ideal and with realistic pixels; docs/backend.md has the check on others.
_NOISE_SCALE = 2.4  # events of one edge are not independent of each other, and the map has noise of its own
_BEGINNING_PX, _BEGINNING_S = 0.18, 0.1  # of the panorama, where the map is no older than this
_TURNING_PX, _TURNING_S = 0.25, 0.01  # where the motion turns round: the speed changes by itself in less than this
_TIME_ERROR_S = 3e-4  # by which the trajectory lags or leads
_STEP_NS = 5_000_000  # to both sides, for the acceleration


def orientation_covariance(
    objective: WindowObjective, spline: RotationSpline, first_free: int, t_ns: int, focal_px: float, seen_s: float
) -> FloatArray:
    """Return the covariance (3, 3) in rad^2 of the orientation at a time, for turns `R exp(phi)` in the body frame.

    `s^2 J H^-1 G H^-1 J^T + (m^2 / n^2 + r^2 / (1 + |omega|^2 / |T alpha|^2)) I + tau^2 omega omega^T`, the sum of

    - the spread of the maximum, whose gradient has the covariance `G` of independent events, with `J` from the control
      rotations to the body at the time;
    - an error of the map's beginning, of which `n` windows are the mean: the first one has nothing to agree with;
    - one of edges that stop inside a pixel where the motion turns round, at the acceleration `alpha`;
    - and one of time, which turns the body at its rate.

    It is meant for the errors that are left where the world frame fits best.

    Parameters
    ----------
    objective : of the window, at its adjusted trajectory
    spline : that trajectory; its control rotations from `first_free` on are free
    t_ns : the time
    focal_px : pixels of the panorama per radian
    seen_s : for how long the camera has seen the window's part of the map, with the window itself
    """
    still = np.zeros(3 * (len(spline) - first_free))
    _, inverse, _ = make_positive(-objective.hessian(still), _FLAT)
    of_turns = inverse @ objective.gradient_scatter(still) @ inverse
    first, jacobians = spline.jacobians_at(t_ns)
    by_control = np.zeros((3, len(spline), 3))
    by_control[:, int(first) : int(first) + spline.order] = jacobians.transpose(1, 0, 2)
    J = spline.rotations_at(t_ns).T @ by_control[:, first_free:].reshape(3, -1)
    before, omega, after = spline.angular_velocities_at(t_ns + _STEP_NS * np.array([-1, 0, 1]))
    change = _TURNING_S * (after - before) / (2e-9 * _STEP_NS)
    turning = (change @ change) / max(change @ change + omega @ omega, np.finfo(float).tiny)
    error_px2 = (_BEGINNING_PX * _BEGINNING_S / max(seen_s, _BEGINNING_S)) ** 2 + _TURNING_PX**2 * turning
    covariance = _NOISE_SCALE**2 * J @ of_turns @ J.T
    covariance += error_px2 / focal_px**2 * np.eye(3) + _TIME_ERROR_S**2 * np.outer(omega, omega)
    return np.asarray(0.5 * (covariance + covariance.T), np.float64)
