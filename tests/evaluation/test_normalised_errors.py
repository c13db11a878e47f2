import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation.normalised_errors import normalised_errors_squared


def test_opposite_errors_about_an_axis_are_divided_by_its_deviation():
    truth = Rotation.from_euler("zyx", [[10, 20, 30], [40, -50, 60]], degrees=True)
    world = Rotation.from_rotvec([0.3, -1.2, 0.8])
    # The best fit takes nothing of them away because they are opposite in the world; the body frames differ.
    in_world = np.array([[0, 0.02, 0], [0, -0.02, 0]])
    estimate = world * Rotation.from_rotvec(-in_world) * truth
    in_body = truth.inv().apply(in_world)
    spreads = np.array([np.diag([1e-4, 4e-4, 9e-4]), np.diag([4e-4, 1e-4, 1e-4])])
    expected = [e @ np.linalg.inv(spread) @ e for e, spread in zip(in_body, spreads, strict=True)]
    np.testing.assert_allclose(normalised_errors_squared(truth, estimate, spreads), expected, rtol=1e-6)


def test_the_mean_is_three_where_the_covariances_are_right():
    random = np.random.default_rng(3)
    truth = Rotation.random(3000, random_state=4)
    halves = 0.01 * random.normal(size=(3000, 3, 3))
    spreads = halves @ halves.transpose(0, 2, 1) + 1e-6 * np.eye(3)
    errors = np.einsum("nij,nj->ni", np.linalg.cholesky(spreads), random.normal(size=(3000, 3)))
    squares = normalised_errors_squared(truth, truth * Rotation.from_rotvec(-errors), spreads)
    assert squares.mean() == pytest.approx(3, rel=0.1)
