"""Alignment of worlds and of clocks."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation.alignment import align_best_fit, align_first_pose, best_time_offset
from cmaxslam_fbp.trajectory import RotationTrajectory


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


@pytest.mark.parametrize("offset_ms", [2.3, -3.1, 0.7, 0.0])
def test_the_lag_of_an_estimate_is_recovered(smooth_motion, offset_ms):
    """An estimate that shows at t what happened at t - 2.3 ms has the offset +2.3 ms."""
    ground_truth = smooth_motion(0, 4, 1000)
    estimate = smooth_motion(0.5, 3.5, 200, lag_ns=round(offset_ms * 1e6))
    world = Rotation.from_rotvec([0.5, -1.0, 2.0])
    estimate = RotationTrajectory.from_rotations(estimate.t_ns, world * estimate.rotations)
    found = best_time_offset(estimate, ground_truth)
    assert found.offset_s * 1e3 == pytest.approx(offset_ms, abs=0.002)
    assert found.rms_deg < 1e-3


def test_the_lag_is_recovered_from_noisy_epoch_stamps(smooth_motion):
    ground_truth = smooth_motion(0, 4, 200)
    estimate = smooth_motion(0.5, 3.5, 200, lag_ns=1_500_000)
    noise = Rotation.from_rotvec(np.random.default_rng(1).normal(0, 1e-3, (len(estimate), 3)))
    epoch_ns = 1468939993067416019
    found = best_time_offset(
        RotationTrajectory.from_rotations(estimate.t_ns + epoch_ns, estimate.rotations * noise),
        RotationTrajectory(ground_truth.t_ns + epoch_ns, ground_truth.quaternions_xyzw),
    )
    assert found.offset_s * 1e3 == pytest.approx(1.5, abs=0.1)
    assert found.rms_deg == pytest.approx(np.degrees(1e-3 * np.sqrt(3)), rel=0.05)


def test_a_larger_lag_stops_at_the_end_of_the_range(smooth_motion):
    found = best_time_offset(smooth_motion(0.5, 3.5, 200, lag_ns=9_000_000), smooth_motion(0, 4, 1000))
    assert found.offset_s == pytest.approx(0.005, abs=1e-6)
    wider = best_time_offset(
        smooth_motion(0.5, 3.5, 200, lag_ns=9_000_000), smooth_motion(0, 4, 1000), max_offset_s=0.02
    )
    assert wider.offset_s == pytest.approx(0.009, abs=2e-6)


def test_without_motion_or_at_a_constant_rate_no_offset_is_claimed():
    t_ns = np.arange(0, 1_000_000_001, 5_000_000, dtype=np.int64)
    for rate in (0.0, 2.0):
        rotations = Rotation.from_rotvec(np.outer(t_ns / 1e9, [0, 0, rate]))
        trajectory = RotationTrajectory.from_rotations(t_ns, rotations)
        assert best_time_offset(trajectory, trajectory) is None


def test_an_overlap_shorter_than_the_range_gives_no_offset(smooth_motion):
    assert best_time_offset(smooth_motion(0, 2, 200), smooth_motion(1.999, 1.999 + 0.011, 1000)) is None
