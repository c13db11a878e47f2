"""Alignment of two worlds."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation.alignment import align_best_fit, align_first_pose


def noisy_pair(seed, noise_rad, count=40):
    random = np.random.default_rng(seed)
    ground_truth = Rotation.from_quat(random.normal(size=(count, 4)))
    world = Rotation.from_quat(random.normal(size=4))
    noise = Rotation.from_rotvec(noise_rad * random.normal(size=(count, 3)) / np.sqrt(3))
    return ground_truth, world.inv() * ground_truth * noise, world


def cost(alignment, ground_truth, estimate):
    return float(((ground_truth.inv() * alignment * estimate).magnitude() ** 2).sum())


def test_the_first_pose_agrees_after_its_alignment():
    ground_truth, estimate, _ = noisy_pair(0, 0.3)
    aligned = align_first_pose(ground_truth, estimate) * estimate
    assert (ground_truth[0].inv() * aligned[0]).magnitude() < 1e-14
    assert (ground_truth[1].inv() * aligned[1]).magnitude() > 1e-3


def test_both_alignments_recover_a_rotated_world_exactly():
    ground_truth, estimate, world = noisy_pair(1, 0.0)
    for alignment in (align_first_pose(ground_truth, estimate), align_best_fit(ground_truth, estimate)[0]):
        assert (world.inv() * alignment).magnitude() < 1e-14


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 0.01, 0.3, 0.8]))
def test_the_mean_residual_of_the_best_fit_vanishes(seed, noise_rad):
    """The gradient of the sum of squared angles is minus twice the sum of log(A^T R_gt R_est^T)."""
    ground_truth, estimate, _ = noisy_pair(seed, noise_rad)
    alignment, angles = align_best_fit(ground_truth, estimate)
    residuals = (alignment.inv() * ground_truth * estimate.inv()).as_rotvec()
    assert np.linalg.norm(residuals.mean(axis=0)) < 1e-11
    np.testing.assert_allclose(angles, (ground_truth.inv() * alignment * estimate).magnitude(), atol=1e-12)


@pytest.mark.parametrize("noise_rad", [0.01, 0.4, 1.0])
def test_the_best_fit_is_the_minimum_that_a_general_minimiser_finds(noise_rad):
    ground_truth, estimate, world = noisy_pair(5, noise_rad)
    found = minimize(
        lambda v: cost(world * Rotation.from_rotvec(v), ground_truth, estimate),
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 5000},
    )
    alignment, angles = align_best_fit(ground_truth, estimate)
    assert (angles**2).sum() == pytest.approx(found.fun, rel=1e-10)
    assert ((world * Rotation.from_rotvec(found.x)).inv() * alignment).magnitude() < 1e-6


def test_the_best_fit_differs_from_the_chordal_mean_where_errors_are_large():
    ground_truth, estimate, _ = noisy_pair(7, 1.0)
    chordal = (ground_truth * estimate.inv()).mean()
    alignment, angles = align_best_fit(ground_truth, estimate)
    assert (chordal.inv() * alignment).magnitude() > 1e-3
    assert (angles**2).sum() < cost(chordal, ground_truth, estimate)


@settings(deadline=None)
@given(st.integers(0, 10_000))
@example(19766)  # here the mean found from the chordal one is a local minimum, worse than the first pose
def test_the_best_fit_is_never_worse_than_the_first_pose(seed):
    """Even for rotations that have nothing to do with each other."""
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 7))
    ground_truth, estimate = (Rotation.from_quat(random.normal(size=(count, 4))) for _ in range(2))
    first = cost(align_first_pose(ground_truth, estimate), ground_truth, estimate)
    assert (align_best_fit(ground_truth, estimate)[1] ** 2).sum() <= first * (1 + 1e-12)
