import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.evaluation.translation_errors import camera_velocities, linear_velocity_errors, position_errors
from cmaxslam_fbp.trajectory import RotationTrajectory

T_NS = np.arange(0, 2_000_000_000, 5_000_000, dtype=np.int64)


def trajectory(positions):
    turns = Rotation.from_rotvec(np.linspace(0, 1, len(T_NS))[:, None] * [0.0, 1.0, 0.0])
    return RotationTrajectory(T_NS, turns.as_quat(), positions)


def test_a_similarity_of_the_reference_has_no_error_and_its_scale_is_found():
    truth = np.random.default_rng(0).normal(size=(len(T_NS), 3))
    estimate = (Rotation.from_rotvec([0.3, -1.0, 0.5]).apply(truth) - [1.0, 2.0, 3.0]) / 0.6
    errors = position_errors(trajectory(estimate), trajectory(truth))
    assert errors.rms_m == pytest.approx(0, abs=1e-9)
    assert errors.scale == pytest.approx(0.6)
    mirrored = position_errors(trajectory(estimate * [1, 1, -1]), trajectory(truth))
    assert mirrored.rms_m > 0.5


def test_noise_is_what_is_left():
    rng = np.random.default_rng(1)
    truth = 0.03 * rng.normal(size=(len(T_NS), 3))
    noisy = trajectory(truth + 0.002 * rng.normal(size=truth.shape))
    figures = evaluate(noisy, trajectory(truth))
    assert figures.position_rms_m == pytest.approx(0.002 * np.sqrt(3), rel=0.1)
    assert figures.position_path_rms_m == pytest.approx(0.03 * np.sqrt(3), rel=0.1)


def test_a_rotation_has_no_position_errors():
    truth = trajectory(np.random.default_rng(2).normal(size=(len(T_NS), 3)))
    assert position_errors(trajectory(None), truth) is None
    assert position_errors(trajectory(np.zeros((len(T_NS), 3))), truth) is None
    assert evaluate(trajectory(None), truth).position_rms_m is None


def poses():
    """A circle of radius 2 m at 0.5 rad/s about z, the camera turning with it."""
    t_ns = np.arange(0, 4_000_000_001, 5_000_000)
    angle = 0.5 * t_ns * 1e-9
    position = 2 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
    return RotationTrajectory(t_ns, Rotation.from_rotvec(angle[:, None] * [0, 0, 1]).as_quat(), position)


def test_reference_velocities_are_in_the_cameras_frame():
    velocities = camera_velocities(poses(), np.array([1_234_000_000, 3_000_000_000]))
    np.testing.assert_allclose(velocities, [[0, 1, 0], [0, 1, 0]], atol=1e-5)


def test_linear_errors_are_given_at_one_metre_and_at_the_best_depth():
    t_ns = np.array([10**9, 2 * 10**9, 99 * 10**9])
    found = np.tile([0, 0.5, 0], (3, 1))
    errors = linear_velocity_errors(t_ns, found, poses())
    assert errors.count == 2
    assert errors.rms_m_s == pytest.approx(0.5, abs=1e-4)
    assert errors.rms_per_axis_m_s == pytest.approx(0.5 / np.sqrt(3), abs=1e-4)
    assert errors.depth_m == pytest.approx(2, abs=1e-3)
    assert errors.rms_at_depth_m_s == pytest.approx(0, abs=1e-4)
    assert linear_velocity_errors(t_ns[2:], found[2:], poses()) is None
    without_positions = RotationTrajectory(poses().t_ns, poses().quaternions_xyzw)
    assert linear_velocity_errors(t_ns, found, without_positions) is None
