"""Rotations against SciPy's, at small angles and at half a turn too."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Reference

from cmaxslam_fbp.geometry.rotation import Rotation

VECTORS = np.concatenate(
    [
        np.random.default_rng(0).normal(size=(50, 3)),
        1e-5 * np.random.default_rng(1).normal(size=(5, 3)),
        np.zeros((1, 3)),
        np.pi * np.eye(3),
        [[9.99e-4, 0, 0], [0, 1.001e-3, 0]],
    ]
)


@pytest.fixture
def both():
    return Rotation.from_rotvec(VECTORS), Reference.from_rotvec(VECTORS)


def test_conversions_are_those_of_scipy(both):
    ours, theirs = both
    np.testing.assert_allclose(ours.as_quat(), theirs.as_quat(), atol=2e-16)
    np.testing.assert_allclose(ours.as_matrix(), theirs.as_matrix(), atol=1e-15)
    np.testing.assert_allclose(ours.as_rotvec(), theirs.as_rotvec(), rtol=1e-14, atol=1e-20)
    np.testing.assert_allclose(ours.magnitude(), theirs.magnitude(), rtol=1e-14)
    np.testing.assert_allclose(Rotation.from_quat(3 * ours.as_quat()).as_quat(), theirs.as_quat(), atol=3e-16)
    back = Rotation.from_matrix(theirs.as_matrix()).as_quat()
    np.testing.assert_allclose(np.abs((back * theirs.as_quat()).sum(axis=1)), 1, rtol=1e-15)


def test_products_inverses_and_turned_vectors_are_those_of_scipy(both):
    ours, theirs = both
    expected = (theirs[:-1].inv() * theirs[1:]).as_rotvec()
    np.testing.assert_allclose((ours[:-1].inv() * ours[1:]).as_rotvec(), expected, atol=3e-15)
    one = Rotation.from_rotvec([0.1, 0.2, 0.3])
    np.testing.assert_allclose(
        (one * ours).as_matrix(), (Reference.from_rotvec([0.1, 0.2, 0.3]) * theirs).as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(ours.apply([1.0, 2.0, 3.0]), theirs.apply([1.0, 2.0, 3.0]), atol=4e-15)
    assert len(ours) == len(VECTORS)
    near = Rotation.from_rotvec(0.1 * VECTORS[:50])
    expected = Reference.from_rotvec(0.1 * VECTORS[:50]).mean()
    np.testing.assert_allclose(near.mean().as_matrix(), expected.as_matrix(), atol=1e-14)


def test_scipy_rotations_multiply_with_ours(both):
    ours, theirs = both
    for mixed in (ours * theirs, theirs * ours):
        assert isinstance(mixed, Rotation)
        np.testing.assert_allclose(mixed.as_matrix(), (theirs * theirs).as_matrix(), atol=2e-15)
