"""Evaluations whose figures follow by hand."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

MS = 1_000_000


def shifted(trajectory, offset_ns):
    return RotationTrajectory(trajectory.t_ns + offset_ns, trajectory.quaternions_xyzw)


def on_the_left(world, trajectory):
    return RotationTrajectory.from_rotations(trajectory.t_ns, world * trajectory.rotations)


def about_z(angles_rad, t_ns):
    return RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec(np.outer(angles_rad, [0, 0, 1])))


def test_a_trajectory_has_no_error_against_itself(smooth_motion):
    trajectory = smooth_motion(0, 2, 100)
    result = evaluate(trajectory, trajectory)
    assert result.poses == 201
    assert result.duration_s == 2.0
    assert result.overlap_of_estimate == result.overlap_of_ground_truth == 1.0
    assert result.absolute_first_pose_max_deg < 1e-9
    assert result.absolute_best_fit_max_deg < 1e-9
    assert result.absolute_at_time_offset_rms_deg < 1e-3
    assert abs(result.time_offset_s) < 1e-5
    assert max(result.relative_rms_deg_s.values()) < 1e-9
    assert result.angular_velocity_rms_deg_s < 1e-9


def test_a_rotated_world_is_no_error(smooth_motion):
    trajectory = smooth_motion(0, 2, 100)
    result = evaluate(on_the_left(Rotation.from_rotvec([0.7, -2.0, 1.1]), trajectory), trajectory)
    assert result.absolute_first_pose_max_deg < 1e-9
    assert result.absolute_best_fit_max_deg < 1e-9
    assert max(result.relative_rms_deg_s.values()) < 1e-9
    assert result.angular_velocity_rms_deg_s < 1e-9


def test_a_constant_body_offset_across_the_axis_of_a_full_turn():
    """The camera turns once about z; the estimate is off by 10 degrees about its own x.

    The best fit is no rotation, by symmetry: every pose is off by 10 degrees. Aligned at the first pose, the
    error at the heading `phi` is the angle between two rotations by 10 degrees whose axes differ by `phi`.
    """
    count, offset = 360, np.radians(10)
    t_ns = np.arange(count, dtype=np.int64) * 10 * MS
    headings = 2 * np.pi * np.arange(count) / count
    ground_truth = about_z(headings, t_ns)
    estimate = RotationTrajectory.from_rotations(t_ns, ground_truth.rotations * Rotation.from_rotvec([offset, 0, 0]))
    result = evaluate(estimate, ground_truth)
    assert result.absolute_best_fit_rms_deg == pytest.approx(10, rel=1e-9)
    assert result.absolute_best_fit_max_deg == pytest.approx(10, rel=1e-9)
    between = 2 * np.arccos(np.cos(offset / 2) ** 2 + np.sin(offset / 2) ** 2 * np.cos(headings))
    assert result.absolute_first_pose_rms_deg == pytest.approx(np.degrees(np.sqrt(np.mean(between**2))), rel=1e-6)
    assert result.absolute_first_pose_max_deg == pytest.approx(20, rel=1e-9)


@pytest.mark.parametrize("axis", [[0, 0, 1.0], [0.6, 0, 0.8]])
def test_a_constant_drift(axis):
    """`r` deg/s for `T` seconds: `rT/sqrt(3)` from the first pose, `rT/sqrt(12)` at best, `r` per second."""
    rate, count, step_s = 3.0, 2001, 0.001
    t_ns = np.arange(count, dtype=np.int64) * MS
    t_s = np.arange(count) * step_s
    ground_truth = RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec(np.outer(0.5 * np.sin(4 * t_s), axis)))
    drift = Rotation.from_rotvec(np.outer(np.radians(rate) * t_s, axis))
    result = evaluate(on_the_left(drift, ground_truth), ground_truth)
    # The exact figures of the samples k = 0 .. n: sum k^2 = n (n + 1) (2 n + 1) / 6.
    n = count - 1
    assert result.absolute_first_pose_rms_deg == pytest.approx(rate * step_s * np.sqrt(n * (2 * n + 1) / 6), rel=1e-9)
    assert result.absolute_best_fit_rms_deg == pytest.approx(rate * step_s * np.sqrt(n * (n + 2) / 12), rel=1e-9)
    # The continuous figures, near them.
    total = rate * n * step_s
    assert result.absolute_first_pose_rms_deg == pytest.approx(total / np.sqrt(3), rel=1e-3)
    assert result.absolute_best_fit_rms_deg == pytest.approx(total / np.sqrt(12), rel=1e-3)
    assert result.absolute_first_pose_max_deg == pytest.approx(total, rel=1e-9)
    assert result.absolute_first_pose_median_deg == pytest.approx(total / 2, rel=1e-9)
    assert result.absolute_best_fit_median_deg == pytest.approx(total / 4, rel=1e-3)
    assert result.relative_rms_deg_s == pytest.approx({"0.01": rate, "0.1": rate, "1": rate}, rel=1e-9)
    assert result.relative_pairs == {"0.01": 1991, "0.1": 1901, "1": 1001}
    assert result.angular_velocity_rms_deg_s == pytest.approx(rate, rel=1e-6)
    assert result.angular_velocity_rms_per_axis_deg_s == pytest.approx(rate / np.sqrt(3), rel=1e-6)


def test_a_lag_shows_as_an_error_that_the_offset_removes(smooth_motion):
    result = evaluate(smooth_motion(0.5, 3.5, 200, lag_ns=2_300_000), smooth_motion(0, 4, 1000))
    assert result.time_offset_s == pytest.approx(0.0023, abs=1e-5)
    assert result.absolute_best_fit_rms_deg > 0.1
    assert result.absolute_at_time_offset_rms_deg < 1e-3


def test_ground_truth_between_its_poses_is_interpolated():
    """At a constant rate the slerp is exact: poses in between have no error."""
    dense = np.arange(0, 1001, 3, dtype=np.int64) * MS
    sparse = np.arange(0, 1001, 100, dtype=np.int64) * MS
    result = evaluate(about_z(dense * 2e-9, dense), about_z(sparse * 2e-9, sparse))
    assert result.poses == len(dense)
    assert result.absolute_first_pose_max_deg < 1e-9


def test_start_and_duration_count_from_the_first_pose_of_the_estimate(smooth_motion):
    estimate, ground_truth = smooth_motion(1, 4, 100), smooth_motion(0, 5, 100)
    result = evaluate(estimate, ground_truth, start_s=0.5, duration_s=1.0)
    assert (result.poses, result.start_s) == (100, 0.5)  # half-open: the pose at 1.5 s is out
    assert result.duration_s == pytest.approx(0.99, rel=1e-12)
    assert result.overlap_of_ground_truth == pytest.approx(0.99, rel=1e-12)
    assert result.relative_rms_deg_s["1"] is None
    assert result.relative_pairs["1"] == 0
    whole = evaluate(estimate, ground_truth, duration_s=30.0)
    assert (whole.poses, whole.start_s) == (301, 0.0)
    tail = evaluate(estimate, ground_truth, start_s=2.0)
    assert (tail.poses, tail.start_s) == (101, 2.0)


def test_the_origin_of_start_can_be_given(smooth_motion):
    """As the first event's time: here 0.4 s before the first pose."""
    result = evaluate(
        smooth_motion(1, 4, 100), smooth_motion(0, 5, 100), start_s=0.5, duration_s=1.0, origin_ns=600 * MS
    )
    assert (result.poses, result.start_s) == (100, 0.5)
    assert result.overlap_of_estimate == 1.0


def test_poses_outside_the_ground_truth_are_counted_but_not_compared(smooth_motion):
    result = evaluate(smooth_motion(0, 4, 100), smooth_motion(1, 2, 100))
    assert result.poses == 101
    assert result.overlap_of_estimate == pytest.approx(101 / 401)
    assert result.overlap_of_ground_truth == 1.0
    short = evaluate(smooth_motion(0, 1, 100), smooth_motion(0, 4, 100))
    assert short.overlap_of_estimate == 1.0
    assert short.overlap_of_ground_truth == pytest.approx(0.25)


def test_a_sparse_estimate_is_marked_where_its_interpolation_is_measured(smooth_motion):
    result = evaluate(smooth_motion(0, 3, 10), smooth_motion(0, 3, 1000))
    assert result.estimate_step_s == pytest.approx(0.1)
    assert result.relative_interpolated == {"0.01": True, "0.1": False, "1": False}
    assert result.relative_rms_deg_s["0.1"] < 1e-6  # its own poses are right
    assert result.relative_rms_deg_s["0.01"] > 1  # what it says in between is not


def test_a_gap_of_the_ground_truth_is_reported(smooth_motion):
    ground_truth = smooth_motion(0, 4, 100)
    keep = (ground_truth.t_ns <= 1000 * MS) | (ground_truth.t_ns >= 1700 * MS)
    gappy = RotationTrajectory(ground_truth.t_ns[keep], ground_truth.quaternions_xyzw[keep])
    estimate = smooth_motion(0, 4, 50)
    assert evaluate(estimate, gappy).ground_truth_longest_gap_s == pytest.approx(0.7)
    assert evaluate(estimate, gappy, duration_s=0.9).ground_truth_longest_gap_s == pytest.approx(0.01)
    assert evaluate(estimate, gappy, start_s=1.2).ground_truth_longest_gap_s == pytest.approx(0.7)
    assert evaluate(estimate, gappy, duration_s=1.2).ground_truth_longest_gap_s == pytest.approx(0.7)
    assert evaluate(estimate, gappy, start_s=2.0).ground_truth_longest_gap_s == pytest.approx(0.01)


def test_a_gyroscope_replaces_the_ground_truth_as_reference_of_the_rate():
    t_ns = np.arange(0, 1001, 10, dtype=np.int64) * MS
    trajectory = about_z(t_ns * 1e-9, t_ns)
    gyroscope = AngularVelocities(t_ns, np.tile([0, 0, 1 + np.radians(2.0)], (len(t_ns), 1)))
    result = evaluate(trajectory, trajectory, reference_velocities=gyroscope)
    assert result.angular_velocity_rms_deg_s == pytest.approx(2.0, rel=1e-9)
    assert result.angular_velocity_reference == "gyroscope"
    assert result.absolute_best_fit_rms_deg < 1e-9
    assert evaluate(trajectory, trajectory).angular_velocity_reference == "ground truth"


def test_the_dictionary_is_json_without_nan(smooth_motion):
    figures = evaluate(smooth_motion(0, 0.5, 100), smooth_motion(0, 0.5, 100)).to_dict()
    again = json.loads(json.dumps(figures, allow_nan=False))
    assert again["relative_rms_deg_s"]["1"] is None
    assert set(again["relative_rms_deg_s"]) == {"0.01", "0.1", "1"}
    assert again["poses"] == 51


@pytest.mark.parametrize(
    ("offset_ns", "words"),
    [
        (1468939993 * 1_000_000_000, "one counts from zero, the other from 1970"),
        (10_000 * MS, "do not overlap"),
    ],
)
def test_trajectories_without_common_time_are_refused_with_both_ranges(smooth_motion, offset_ns, words):
    trajectory = smooth_motion(0, 2, 100)
    with pytest.raises(TrajectoryError, match=words) as caught:
        evaluate(trajectory, shifted(trajectory, offset_ns))
    message = str(caught.value)
    assert "\n" not in message
    assert "0.000 to 2.000 s" in message
    assert f"{offset_ns / 1e9:.3f} to {offset_ns / 1e9 + 2:.3f} s" in message


def test_a_time_range_without_poses_is_refused(smooth_motion):
    trajectory = smooth_motion(0, 2, 100)
    with pytest.raises(TrajectoryError, match="start and duration leave 0 poses"):
        evaluate(trajectory, trajectory, start_s=5.0)
    with pytest.raises(TrajectoryError, match="must be positive"):
        evaluate(trajectory, trajectory, duration_s=0.0)


def test_a_ground_truth_inside_one_step_of_the_estimate_is_refused(smooth_motion):
    with pytest.raises(TrajectoryError, match="too few poses of the estimate lie within the ground truth"):
        evaluate(smooth_motion(0, 2, 1), smooth_motion(0.4, 0.6, 100))


unit_quaternions = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1)


@settings(max_examples=20, deadline=None)
@given(unit_quaternions, unit_quaternions, st.integers(0, 1000))
def test_figures_do_not_depend_on_either_world(smooth_motion, world_a, world_b, seed):
    ground_truth = smooth_motion(0, 1.2, 50)
    noise = Rotation.from_rotvec(np.random.default_rng(seed).normal(0, 0.05, (len(ground_truth), 3)))
    estimate = RotationTrajectory.from_rotations(ground_truth.t_ns, ground_truth.rotations * noise)
    plain = evaluate(estimate, ground_truth).to_dict()
    moved = evaluate(
        on_the_left(Rotation.from_quat(world_a), estimate), on_the_left(Rotation.from_quat(world_b), ground_truth)
    ).to_dict()
    assert moved.pop("angular_velocity_reference") == plain.pop("angular_velocity_reference")
    for name, value in plain.items():
        if value is None:
            assert moved[name] is None
            continue
        tolerance = 1e-6 if "offset" in name else 1e-9
        assert moved[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_estimate_and_ground_truth_of_the_same_stamps_can_change_places(smooth_motion, seed):
    a = smooth_motion(0, 1.2, 50)
    noise = Rotation.from_rotvec(np.random.default_rng(seed).normal(0, 0.05, (len(a), 3)))
    b = RotationTrajectory.from_rotations(a.t_ns, noise * a.rotations)
    one, other = evaluate(a, b), evaluate(b, a)
    for name in ("absolute_best_fit_rms_deg", "absolute_first_pose_rms_deg", "angular_velocity_rms_deg_s"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)
    assert one.relative_rms_deg_s == pytest.approx(other.relative_rms_deg_s, rel=1e-9)


def test_the_memory_of_an_evaluation_is_a_few_times_that_of_the_poses():
    count = 100_000
    t_ns = np.arange(count, dtype=np.int64) * 5_000_000
    angles = np.outer(np.sin(t_ns / 1e9), [0.3, 0.2, 0.1])
    poses = RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec(angles))
    tracemalloc.start()
    try:
        evaluate(poses, poses)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes / count < 400  # 310, of which a pose itself is 40; with matrices of all poses 560
