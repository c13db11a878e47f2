import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.evaluation.position_errors import position_errors
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
