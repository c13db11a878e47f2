"""Exponential, logarithm and Jacobians of rotations, against independent forms and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from cmaxslam_fbp.geometry import so3

AXIS = np.array([0.36, -0.48, 0.8])
# Zero, the smallest numbers, both sides of the switch to the series at 0.01, ordinary angles, both sides of pi.
ANGLES = [0.0, 1e-300, 1e-12, 1e-4, 0.01 - 1e-9, 0.01 + 1e-9, 0.3, 1.7, np.pi - 1e-6, np.pi, 4.0, 6.0]

vectors = st.tuples(*[st.floats(-2, 2)] * 3).map(np.array)


def turns_below(limit):
    return vectors.filter(lambda v: np.linalg.norm(v) < limit)


def test_hat_is_the_cross_product():
    v, u = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -1.0])
    np.testing.assert_allclose(so3.hat(v) @ u, np.cross(v, u), rtol=0, atol=0)
    assert so3.hat([1, 2, 3]).tolist() == [[0, -3, 2], [3, 0, -1], [-2, 1, 0]]


def test_a_quarter_turn_about_z_takes_x_to_y():
    np.testing.assert_allclose(so3.exp([0, 0, np.pi / 2]) @ [1, 0, 0], [0, 1, 0], atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_is_the_matrix_exponential(angle):
    np.testing.assert_allclose(so3.exp(angle * AXIS), expm(so3.hat(angle * AXIS)), atol=1e-13)


@settings(deadline=None)
@given(turns_below(np.pi - 1e-6))
def test_log_inverts_exp(phi):
    np.testing.assert_allclose(so3.log(so3.exp(phi)), phi, atol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-7, 1e-3, 0.5, 3.0, np.pi - 1e-3])
def test_log_inverts_exp_to_the_last_digits(angle):
    np.testing.assert_allclose(so3.log(so3.exp(angle * AXIS)), angle * AXIS, rtol=0, atol=2e-15 + 1e-13 * angle)


@settings(deadline=None)
@given(vectors)
def test_exp_inverts_log_for_any_rotation(phi):
    R = so3.exp(2 * phi)
    assert np.linalg.norm(so3.log(R)) <= np.pi + 1e-12
    np.testing.assert_allclose(so3.exp(so3.log(R)), R, atol=1e-12)


def test_at_half_a_turn_the_logarithm_has_length_pi():
    phi = so3.log(so3.exp(np.pi * AXIS))
    assert np.linalg.norm(phi) == pytest.approx(np.pi, abs=1e-12)
    assert abs(phi @ AXIS) == pytest.approx(np.pi, abs=1e-7)


def test_beyond_half_a_turn_the_logarithm_takes_the_short_way():
    np.testing.assert_allclose(so3.log(so3.exp(4.0 * AXIS)), (4.0 - 2 * np.pi) * AXIS, atol=1e-12)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (2, 4, 3)])
def test_leading_dimensions_are_kept(shape):
    phi = np.random.default_rng(0).normal(size=shape)
    R = so3.exp(phi)
    assert R.shape == (*shape, 3)
    assert so3.log(R).shape == shape
    first = phi.reshape(-1, 3)[-1]
    np.testing.assert_allclose(R.reshape(-1, 3, 3)[-1], so3.exp(first), atol=1e-15)
    for jacobian in (so3.left_jacobian, so3.left_jacobian_inverse, so3.right_jacobian, so3.right_jacobian_inverse):
        J = jacobian(phi)
        assert J.shape == (*shape, 3)
        np.testing.assert_allclose(J.reshape(-1, 3, 3)[-1], jacobian(first), atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_is_the_integral_of_exp(angle):
    """`J_l(phi) = integral of exp(s phi) for s from 0 to 1`, a block of a larger matrix exponential."""
    block = np.zeros((6, 6))
    block[:3, :3], block[:3, 3:] = so3.hat(angle * AXIS), np.eye(3)
    np.testing.assert_allclose(so3.left_jacobian(angle * AXIS), expm(block)[:3, 3:], atol=1e-13)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize(
    ("jacobian", "inverse"),
    [(so3.left_jacobian, so3.left_jacobian_inverse), (so3.right_jacobian, so3.right_jacobian_inverse)],
)
def test_inverse_jacobians_are_inverses(angle, jacobian, inverse):
    np.testing.assert_allclose(jacobian(angle * AXIS) @ inverse(angle * AXIS), np.eye(3), atol=1e-12)


def differences(function, step=1e-5):
    """Central differences of a vector function at zero, as the columns of a matrix."""
    return np.column_stack([(function(step * e) - function(-step * e)) / (2 * step) for e in np.eye(3)])


@pytest.mark.parametrize("angle", ANGLES)
def test_jacobians_are_the_derivatives_of_exp(angle):
    phi = angle * AXIS
    R = so3.exp(phi)
    left = differences(lambda d: so3.log(so3.exp(phi + d) @ R.T))
    right = differences(lambda d: so3.log(R.T @ so3.exp(phi + d)))
    np.testing.assert_allclose(so3.left_jacobian(phi), left, atol=5e-10)
    np.testing.assert_allclose(so3.right_jacobian(phi), right, atol=5e-10)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.01 - 1e-9, 0.01 + 1e-9, 0.3, 1.7, 3.1])
def test_inverse_jacobians_are_the_derivatives_of_log(angle):
    phi = angle * AXIS
    R = so3.exp(phi)
    np.testing.assert_allclose(
        so3.left_jacobian_inverse(phi), differences(lambda d: so3.log(so3.exp(d) @ R)), atol=2e-8
    )
    np.testing.assert_allclose(
        so3.right_jacobian_inverse(phi), differences(lambda d: so3.log(R @ so3.exp(d))), atol=2e-8
    )


@settings(deadline=None)
@given(turns_below(3.0))
def test_left_and_right_jacobian_differ_by_the_rotation(phi):
    np.testing.assert_allclose(so3.left_jacobian(phi), so3.exp(phi) @ so3.right_jacobian(phi), atol=1e-13)
    np.testing.assert_allclose(so3.left_jacobian(phi), so3.right_jacobian(phi).T, atol=1e-13)
