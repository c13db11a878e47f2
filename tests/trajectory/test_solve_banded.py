"""The banded solver of the spline fit."""

import numpy as np
import pytest

from cmaxslam_fbp.trajectory.spline_fit_kernels import solve_banded


@pytest.mark.parametrize(("rows", "count"), [(1, 5), (4, 3), (12, 30)])
def test_the_solution_is_that_of_the_full_matrix(rows, count):
    random = np.random.default_rng(rows)
    half = np.tril(random.normal(size=(count, count)))
    half[np.subtract.outer(np.arange(count), np.arange(count)) >= rows] = 0
    matrix, rhs = half @ half.T + np.eye(count), random.normal(size=count)
    band = np.zeros((rows, count))
    for k in range(min(rows, count)):
        band[k, : count - k] = np.diagonal(matrix, -k)
    expected = np.linalg.solve(matrix, rhs)
    solve_banded(band, rhs)
    np.testing.assert_allclose(rhs, expected, rtol=1e-10)


def test_a_matrix_that_is_not_positive_gives_nan():
    band, rhs = -np.ones((1, 2)), np.ones(2)
    solve_banded(band, rhs)
    assert np.isnan(rhs).all()
