"""The normal equations of a spline fit, against finite differences of its residuals."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.trajectory.spline import RotationSpline
from cmaxslam_fbp.trajectory.spline_fit_kernels import normal_equations

STEP_NS = 50_000_000
COUNT = 7
STIFFNESS = 0.3


def residuals(spline, t_ns, observed, deltas, fixed):
    """Angles to the observed rotations in the world frame, and weighted second differences: all in one vector."""
    moved = spline.with_perturbation(fixed, deltas)
    controls = Rotation.from_quat(moved.quaternions_xyzw)
    steps = (controls[:-1].inv() * controls[1:]).as_rotvec()
    data = (observed * Rotation.from_quat(moved.quaternions_at(t_ns)).inv()).as_rotvec()
    return np.concatenate([data.ravel(), np.sqrt(STIFFNESS) * np.diff(steps, axis=0).ravel()])


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("fixed", [0, 1, 3])
def test_normal_equations_are_those_of_the_residuals(order, fixed):
    random = np.random.default_rng(0)
    turns = Rotation.from_rotvec(np.cumsum(random.normal(size=(COUNT, 3)) * 0.5, axis=0))
    spline = RotationSpline(order, 0, STEP_NS, turns.as_quat())
    t_ns = np.sort(random.integers(0, spline.end_ns, 30))
    far = Rotation.from_rotvec(random.normal(size=(30, 3)) * 0.4)  # residuals so large that their own curvature counts
    observed = far * Rotation.from_quat(spline.quaternions_at(t_ns))

    size = 3 * (COUNT - fixed)
    h = 1e-5
    columns = []
    for index in range(size):
        step = np.zeros(size)
        step[index] = h
        forward = residuals(spline, t_ns, observed, step, fixed)
        columns.append((forward - residuals(spline, t_ns, observed, -step, fixed)) / (2 * h))
    J = np.column_stack(columns)
    e = residuals(spline, t_ns, observed, np.zeros(size), fixed)

    band, gradient = np.empty((3 * max(order, 3), size)), np.empty(size)
    cost = normal_equations(
        order, spline.quaternions_xyzw, 0, STEP_NS, t_ns, observed.as_quat(), fixed, STIFFNESS, band, gradient
    )
    matrix = np.zeros((size, size))
    for below in range(min(len(band), size)):
        matrix[np.arange(below, size), np.arange(size - below)] = band[below, : size - below]
    np.testing.assert_allclose(matrix, np.tril(J.T @ J), rtol=0, atol=2e-8)
    np.testing.assert_allclose(gradient, J.T @ e, rtol=0, atol=2e-8)
    assert cost == pytest.approx(e @ e, rel=1e-13)
