"""Quaternion orders at the border to pyquaternion."""

import numpy as np
from pyquaternion import Quaternion
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry.quaternion import from_pyquaternion, to_pyquaternion


def test_w_comes_first_outside_and_last_inside():
    quaternion = to_pyquaternion([0.1, -0.3, 0.5, 0.8])
    assert (quaternion.x, quaternion.y, quaternion.z, quaternion.w) == (0.1, -0.3, 0.5, 0.8)
    assert from_pyquaternion(Quaternion(w=0.8, x=0.1, y=-0.3, z=0.5)).tolist() == [0.1, -0.3, 0.5, 0.8]


def test_both_rotate_a_vector_alike():
    rotation = Rotation.from_rotvec([0.3, -0.9, 1.4])
    vector = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(to_pyquaternion(rotation.as_quat()).rotate(vector), rotation.apply(vector), atol=1e-14)


def test_the_round_trip_is_exact():
    q = np.random.default_rng(0).normal(size=4)
    assert (from_pyquaternion(to_pyquaternion(q)) == q).all()
