"""Compiled quaternions, exponential, logarithm and Jacobians, against scipy and the NumPy forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.geometry import so3_kernels as kernels

AXIS = np.array([0.36, -0.48, 0.8])
# Zero, the smallest numbers, both sides of the switches at 1e-15 and 1e-6, ordinary angles, up to half a turn.
ANGLES = [0.0, 1e-300, 0.9e-15, 1.1e-15, 1e-9, 0.9e-6, 1.1e-6, 1e-3, 0.3, 1.7, 3.0, np.pi - 1e-6]
PAIR = Rotation.from_rotvec([[0.3, -1.2, 0.7], [2.0, 0.1, -1.0]])


def written(function, *arguments):
    out = np.full((3, 3), np.nan)
    function(*arguments, out)
    return out


def test_products_conjugates_and_turns_are_those_of_scipy():
    p, q = (tuple(r.as_quat()) for r in PAIR)
    np.testing.assert_allclose(kernels.multiply(p, q), (PAIR[0] * PAIR[1]).as_quat(canonical=False), atol=1e-15)
    np.testing.assert_allclose(kernels.conjugate(p), PAIR[0].inv().as_quat(), atol=1e-15)
    np.testing.assert_allclose(kernels.rotate(p, (1.0, 2.0, -3.0)), PAIR[0].apply([1, 2, -3]), atol=1e-15)
    np.testing.assert_allclose(written(kernels.write_matrix, p), PAIR[0].as_matrix(), atol=1e-15)


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 4.0, 7.0])
def test_exp_is_half_the_angle_about_the_axis(angle):
    found = np.array(kernels.so3_exp(*(angle * AXIS)))
    expected = np.append(np.sin(angle / 2) * AXIS, np.cos(angle / 2))
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=5e-16 * (angle >= 3))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("angle", ANGLES)
def test_log_inverts_exp_to_the_last_digits(angle, sign):
    q = tuple(sign * np.array(kernels.so3_exp(*(angle * AXIS))))
    np.testing.assert_allclose(kernels.so3_log(q), angle * AXIS, rtol=1e-15, atol=0)


def test_log_takes_the_short_way():
    np.testing.assert_allclose(kernels.so3_log(kernels.so3_exp(*(4.0 * AXIS))), (4 - 2 * np.pi) * AXIS, rtol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_inverse_jacobian_is_that_of_the_numpy_form(angle):
    phi = angle * AXIS
    np.testing.assert_allclose(
        written(kernels.write_left_jacobian_inverse, *phi), so3.left_jacobian_inverse(phi), atol=1e-14
    )


@pytest.mark.parametrize("power", [0.0, 1e-6, 1 / 6, 0.5, 5 / 6, 1.0])
@pytest.mark.parametrize("angle", ANGLES)
def test_the_jacobian_of_a_power_is_a_product_of_jacobians(angle, power):
    phi = angle * AXIS
    expected = power * so3.left_jacobian(power * phi) @ so3.left_jacobian_inverse(phi)
    np.testing.assert_allclose(written(kernels.write_power_jacobian, *phi, power), expected, atol=1e-14)
