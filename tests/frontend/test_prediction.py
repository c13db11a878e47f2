import numpy as np

from cmaxslam_fbp.contrast.solvers.solver import Solution, Status
from cmaxslam_fbp.frontend.covariance import change_variance, is_nearly_flat, velocity_covariance
from cmaxslam_fbp.frontend.maximiser import CurvatureMemory
from cmaxslam_fbp.frontend.prediction import Prediction

A, B = np.array([1.0, 0, 0]), np.array([1.5, 0.2, 0])
MS = 1_000_000


def test_velocities_are_carried_on_along_a_line():
    prediction = Prediction()
    assert prediction.at(0) is None
    prediction.add(10 * MS, A)
    np.testing.assert_array_equal(prediction.at(20 * MS), A)
    prediction.add(20 * MS, B)
    np.testing.assert_allclose(prediction.at(25 * MS), B + 0.5 * (B - A))
    np.testing.assert_allclose(prediction.at(90 * MS), B + 2 * (B - A))
    assert prediction.at(300 * MS) is None


def test_a_velocity_that_does_not_continue_starts_anew():
    prediction = Prediction()
    prediction.add(10 * MS, A)
    prediction.add(20 * MS, B, continues=False)
    np.testing.assert_array_equal(prediction.at(30 * MS), B)


def test_two_velocities_of_one_time_do_not_divide_by_zero():
    prediction = Prediction()
    prediction.add(10 * MS, A)
    prediction.add(10 * MS, B)
    np.testing.assert_array_equal(prediction.at(20 * MS), B)
    assert prediction.change_over(10 * MS, A, 1.0) == 0


def test_the_change_over_a_packet_is_the_rate_of_change_times_its_length():
    prediction = Prediction()
    assert prediction.change_over(0, A, 1.0) == 0
    prediction.add(0, A)
    assert np.isclose(prediction.change_over(20 * MS, A + np.array([0, 0.3, 0.4]), 0.04), 1.0)
    assert change_variance(1.0, 3) == 0.05**2 / 3


def solution(hessian, status=Status.CONVERGED):
    return Solution(A, A, 1.0, status, 1, 0, np.zeros(3), hessian)


def test_curvatures_grow_with_the_squares_of_time_and_events():
    memory = CurvatureMemory()
    assert memory.at(1, 1.0, 100) is None
    memory.put(1, 2.0, 100, solution(-np.eye(3)))
    np.testing.assert_allclose(memory.at(1, 1.0, 100), -4 * np.eye(3))
    np.testing.assert_allclose(memory.at(1, 2.0, 50), -0.25 * np.eye(3))
    assert memory.at(2, 1.0, 100) is None
    memory.put(1, 2.0, 100, solution(-np.eye(3), Status.STALLED))
    assert memory.at(1, 1.0, 100) is None


def test_the_covariance_is_the_sandwich():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 3, 3))
    hessian, scatter = -(a @ a.T + np.eye(3)), b @ b.T
    inverse = np.linalg.inv(hessian)
    np.testing.assert_allclose(velocity_covariance(hessian, scatter, 1e3), inverse @ scatter @ inverse, rtol=1e-9)


def test_what_the_score_does_not_see_is_as_uncertain_as_can_be():
    hessian = -np.diag([1.0, 2.0, 0.0])
    assert is_nearly_flat(hessian)
    assert not is_nearly_flat(-np.diag([1.0, 2.0, 0.1]))
    covariance = velocity_covariance(hessian, np.diag([0.01, 0.01, 0.0]), 5.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[-1], 25.0)
    assert np.isfinite(covariance).all()
    np.testing.assert_array_equal(velocity_covariance(np.zeros((3, 3)), np.zeros((3, 3)), 5.0), 25 * np.eye(3))
    wide = velocity_covariance(-1e-3 * np.eye(3), np.eye(3), 5.0)
    np.testing.assert_allclose(wide, 25 * np.eye(3))
