"""Errors whose values follow by hand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.evaluation import angular_velocity_errors
from cmaxslam_fbp.evaluation.rotation_errors import absolute_errors_deg, relative_errors_deg_s
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

MS = 1_000_000


def turning(rates_deg_s, count=11, step_ns=100 * MS):
    """A trajectory of constant body rate from the identity."""
    t_ns = np.arange(count, dtype=np.int64) * step_ns
    turned = np.outer(t_ns / 1e9, np.radians(rates_deg_s))
    return RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec(turned))


def test_the_alignment_stands_on_the_left_of_the_estimate():
    quarter_x, quarter_z = Rotation.from_euler("x", 90, degrees=True), Rotation.from_euler("z", 90, degrees=True)
    estimate = Rotation.concatenate([quarter_x])
    ground_truth = Rotation.concatenate([quarter_z * quarter_x])
    assert absolute_errors_deg(ground_truth, estimate, quarter_z) == pytest.approx([0], abs=1e-12)
    # Without alignment what is left is conjugate to the quarter turn about z.
    assert absolute_errors_deg(ground_truth, estimate, Rotation.identity()) == pytest.approx([90], abs=1e-12)


@pytest.mark.parametrize("dt_s", [0.01, 0.1, 0.3, 1.0])
def test_a_constant_drift_is_its_own_relative_error(dt_s):
    errors = relative_errors_deg_s(turning([0, 0, 7.5]), turning([0, 0, 2.5]), dt_s)
    np.testing.assert_allclose(errors, 5.0, rtol=1e-9)


def test_relative_rotations_start_at_each_pose_that_leaves_room():
    estimate, ground_truth = turning([0, 0, 7.5]), turning([0, 0, 2.5])
    assert len(relative_errors_deg_s(estimate, ground_truth, 0.3)) == 8
    assert len(relative_errors_deg_s(estimate, ground_truth, 1.0)) == 1
    assert len(relative_errors_deg_s(estimate, ground_truth, 1.01)) == 0
    shorter_truth = turning([0, 0, 2.5], count=6)
    assert len(relative_errors_deg_s(estimate, shorter_truth, 0.3)) == 3


def test_relative_rotations_are_seen_from_the_body():
    """Opposite drifts about x and y over one second: the angle of exp(-a x) exp(a y), over the second."""
    angle = np.radians(40)
    expected = 2 * np.arccos(np.cos(angle / 2) ** 2)
    errors = relative_errors_deg_s(turning([0, 40, 0], 2, 1000 * MS), turning([40, 0, 0], 2, 1000 * MS), 1.0)
    assert errors == pytest.approx([np.degrees(expected)], rel=1e-12)


def test_relative_errors_ignore_the_worlds():
    a, b = turning([3, -4, 20]), turning([1, 2, 15])
    world = Rotation.from_rotvec([0.3, -1.2, 0.8])
    moved = RotationTrajectory.from_rotations(a.t_ns, world * a.rotations)
    np.testing.assert_allclose(relative_errors_deg_s(moved, b, 0.1), relative_errors_deg_s(a, b, 0.1), atol=1e-9)


def test_a_time_step_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="positive"):
        relative_errors_deg_s(turning([1, 0, 0]), turning([1, 0, 0]), 0.0)


def test_the_angular_velocity_error_by_hand():
    t_ns = np.array([0, 10, 20]) * MS
    reference = AngularVelocities(t_ns, np.radians([[1.0, 2, 3]] * 3))
    estimate = AngularVelocities(t_ns, np.radians([[4.0, 6, 3]] * 3))  # differs by (3, 4, 0)
    errors = angular_velocity_errors(estimate, reference)
    assert errors.count == 3
    assert errors.rms_deg_s == pytest.approx(5.0, rel=1e-12)
    assert errors.rms_per_axis_deg_s == pytest.approx(5 / np.sqrt(3), rel=1e-12)
    assert errors.axes_rms_deg_s == pytest.approx((3, 4, 0), abs=1e-12)


def test_a_trajectory_is_compared_with_a_gyroscope_in_the_body_frame():
    world = Rotation.from_rotvec([1.0, 0.4, -0.3])
    trajectory = turning([10, -20, 30])
    turned = RotationTrajectory.from_rotations(trajectory.t_ns, world * trajectory.rotations)
    gyroscope = AngularVelocities(np.array([200, 700]) * MS, np.radians([[10.0, -20, 31]] * 2))
    errors = angular_velocity_errors(turned, gyroscope)
    assert errors.count == 6  # 200 to 700 ms
    assert errors.axes_rms_deg_s == pytest.approx((0, 0, 1), abs=1e-9)


def test_velocities_without_a_common_time_are_refused():
    late = AngularVelocities(np.array([2000, 3000]) * MS, np.zeros((2, 3)))
    with pytest.raises(TrajectoryError, match="no time in common"):
        angular_velocity_errors(turning([0, 0, 1]), late)
