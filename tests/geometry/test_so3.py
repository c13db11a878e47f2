"""Jacobians of rotation vectors, against independent forms and finite differences."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry import so3

AXIS = np.array([0.36, -0.48, 0.8])
# Zero, the smallest numbers, both sides of the switch to the series at 0.01, ordinary angles, both sides of pi.
ANGLES = [0.0, 1e-300, 1e-12, 1e-4, 0.01 - 1e-9, 0.01 + 1e-9, 0.3, 1.7, np.pi - 1e-6, np.pi, 4.0, 6.0]


def test_hat_is_the_cross_product():
    v, u = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -1.0])
    np.testing.assert_allclose(so3.hat(v) @ u, np.cross(v, u), rtol=0, atol=0)
    assert so3.hat([1, 2, 3]).tolist() == [[0, -3, 2], [3, 0, -1], [-2, 1, 0]]


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (2, 4, 3)])
def test_leading_dimensions_are_kept(shape):
    phi = np.random.default_rng(0).normal(size=shape)
    for jacobian in (so3.left_jacobian, so3.left_jacobian_inverse):
        J = jacobian(phi)
        assert J.shape == (*shape, 3)
        np.testing.assert_allclose(J.reshape(-1, 3, 3)[-1], jacobian(phi.reshape(-1, 3)[-1]), atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_is_the_integral_of_exp(angle):
    """`J_l(phi) = integral of exp(s phi) for s from 0 to 1`, a block of a larger matrix exponential."""
    block = np.zeros((6, 6))
    block[:3, :3], block[:3, 3:] = so3.hat(angle * AXIS), np.eye(3)
    np.testing.assert_allclose(so3.left_jacobian(angle * AXIS), expm(block)[:3, 3:], atol=1e-13)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_inverse_jacobian_is_the_inverse(angle):
    product = so3.left_jacobian(angle * AXIS) @ so3.left_jacobian_inverse(angle * AXIS)
    np.testing.assert_allclose(product, np.eye(3), atol=1e-12)


def differences(function, step=1e-5):
    """Central differences of a vector function at zero, as the columns of a matrix."""
    return np.column_stack([(function(step * e) - function(-step * e)) / (2 * step) for e in np.eye(3)])


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_is_the_derivative_of_exp(angle):
    phi = angle * AXIS
    back = Rotation.from_rotvec(-phi)
    numeric = differences(lambda d: (Rotation.from_rotvec(phi + d) * back).as_rotvec())
    np.testing.assert_allclose(so3.left_jacobian(phi), numeric, atol=5e-10)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.01 - 1e-9, 0.01 + 1e-9, 0.3, 1.7, 3.1])
def test_the_inverse_jacobian_is_the_derivative_of_log(angle):
    phi = angle * AXIS
    R = Rotation.from_rotvec(phi)
    numeric = differences(lambda d: (Rotation.from_rotvec(d) * R).as_rotvec())
    np.testing.assert_allclose(so3.left_jacobian_inverse(phi), numeric, atol=2e-8)
