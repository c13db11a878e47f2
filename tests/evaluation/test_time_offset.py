"""The best constant time offset."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation.time_offset import best_time_offset
from cmaxslam_fbp.trajectory import RotationTrajectory


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
