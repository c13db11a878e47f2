"""The published errors on cases that follow by hand."""

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.evaluation.cmax_slam_metric import cmax_slam_errors, low_pass
from cmaxslam_fbp.io.trajectory_files import write_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory


def about_z(angle_rad, duration_s=40.0, rate_hz=200, start_s=0.0):
    """A trajectory whose angle about z is a function of the time in seconds."""
    t_ns = np.arange(round(start_s * 1e9), round((start_s + duration_s) * 1e9) + 1, round(1e9 / rate_hz))
    angles = np.broadcast_to(angle_rad(t_ns / 1e9), t_ns.shape)
    return RotationTrajectory.from_rotations(t_ns, Rotation.from_rotvec(np.outer(angles, [0, 0, 1])))


def still(t_s):
    return 0 * t_s


def test_a_drift_counts_from_the_instant_of_the_alignment():
    """A drift of 2 deg/s from 1 s, sampled at 50 Hz from 0 to 29.98 s: RMS of 2 (t - 1)."""
    errors = cmax_slam_errors(about_z(lambda t: np.radians(2 * t)), about_z(still), origin_ns=0)
    t_s = np.arange(1500) / 50
    assert errors.abs_deg == pytest.approx(np.sqrt(np.mean((2 * (t_s - 1)) ** 2)), rel=1e-9)
    assert errors.rel_deg_s == pytest.approx(2.0, rel=1e-9)
    assert errors.duration_s == pytest.approx(29.98)
    assert errors.abs_floor_deg == pytest.approx(0, abs=1e-9)


def test_the_world_is_aligned_by_the_left():
    """A turned world is no error; a constant turn of the camera beside its axis is."""
    truth = about_z(lambda t: 0.5 * t)
    world = RotationTrajectory.from_rotations(truth.t_ns, Rotation.from_rotvec([0.3, -1.1, 0.4]) * truth.rotations)
    assert cmax_slam_errors(world, truth, 0).abs_unfiltered_deg == pytest.approx(0, abs=1e-6)
    # Off by 5 degrees about its own x: after the alignment at 1 s, the two axes differ by the heading since then.
    off = Rotation.from_rotvec([np.radians(5), 0, 0])
    beside = RotationTrajectory.from_rotations(truth.t_ns, truth.rotations * off)
    heading = 0.5 * (np.arange(1500) / 50 - 1)
    there = Rotation.from_rotvec(np.radians(5) * np.column_stack([np.cos(heading), np.sin(heading), 0 * heading]))
    expected = np.degrees((off * there.inv()).magnitude())
    assert cmax_slam_errors(beside, truth, 0).abs_unfiltered_deg == pytest.approx(np.sqrt(np.mean(expected**2)))


def test_relative_errors_are_taken_over_one_second_from_every_tenth():
    """A step of 3 degrees at 10.03 s lies within ten of the relative rotations, which start every 0.1 s."""
    errors = cmax_slam_errors(about_z(lambda t: np.radians(3) * (t >= 10.03)), about_z(still), 0)
    pairs = len(np.arange(0, 29.98 - 1 + 1e-9, 0.1))
    assert errors.rel_deg_s == pytest.approx(3 * np.sqrt(10 / pairs), rel=1e-9)


@pytest.mark.parametrize("frequency_hz", [0.5, 2.0, 5.0])
def test_the_low_pass_weakens_an_oscillation_as_a_gaussian_does(frequency_hz):
    """`exp(-(2 pi f sigma)^2 / 2)`, but for the tails that are cut off after three standard deviations."""
    rate = 2 * np.pi * frequency_hz
    swing = about_z(lambda t: 0.2 * np.sin(rate * t), 4.0, 1000)
    angles = low_pass(swing, 0.05).rotations.as_rotvec()[500:-500, 2]
    expected = 0.2 * np.exp(-0.5 * (rate * 0.05) ** 2) * np.sin(rate * swing.t_ns[500:-500] / 1e9)
    np.testing.assert_allclose(angles, expected, atol=0.2 * 0.004)


def test_a_steady_turn_passes_the_low_pass_at_any_rate():
    turn = about_z(lambda t: np.radians(600) * t, 2.0)
    turned = low_pass(turn, 0.05).rotations[40:-40].inv() * turn.rotations[40:-40]
    assert np.degrees(turned.magnitude().max()) < 1e-9


def test_poses_at_uneven_times_have_the_weight_of_the_time_that_they_stand_for():
    """Poses every 5 ms, and every 0.5 ms in the second half: the mean of a ramp around the seam stays on it."""
    t_ns = np.concatenate([np.arange(0, 1000, 5), np.arange(1000, 2000, 0.5)]) * 1_000_000
    turn = RotationTrajectory.from_rotations(
        t_ns.astype(np.int64), Rotation.from_rotvec(np.outer(t_ns / 1e9, [0, 0, 1.0]))
    )
    seam = slice(150, 500)
    left = (low_pass(turn, 0.05).rotations[seam].inv() * turn.rotations[seam]).magnitude()
    assert left.max() < 2e-4  # with equal weights 0.02


def test_a_perfect_estimate_has_the_floor():
    truth = about_z(lambda t: 0.4 * np.sin(12 * t))
    errors = cmax_slam_errors(truth, truth, 0)
    assert errors.abs_deg == pytest.approx(errors.abs_floor_deg, abs=1e-9)
    assert errors.rel_deg_s == pytest.approx(errors.rel_floor_deg_s, abs=1e-9)
    assert errors.abs_deg > 1
    assert errors.abs_unfiltered_deg == pytest.approx(0, abs=1e-9)


def test_without_the_instant_of_the_alignment_there_are_no_figures():
    short = about_z(still, 0.9)
    assert cmax_slam_errors(short, short, 0) is None
    early = cmax_slam_errors(short, short, 0, align_at_s=0.1)
    assert early.abs_deg == pytest.approx(0, abs=1e-9)
    assert early.rel_deg_s is None
    assert evaluate(short, short).cmax_slam is None


def test_time_counts_from_the_origin_or_from_where_the_comparison_starts():
    drift, truth = about_z(lambda t: np.radians(2 * t), start_s=100), about_z(still, start_s=100)
    later = evaluate(drift, truth, origin_ns=100_000_000_000, start_s=2.0).cmax_slam
    t_s = np.arange(1500) / 50
    assert later.abs_deg == pytest.approx(np.sqrt(np.mean((2 * (t_s - 1)) ** 2)), rel=1e-9)


def test_the_command_prints_the_published_errors(run, tmp_path):
    write_trajectory(tmp_path / "est.txt", about_z(lambda t: np.radians(2 * t)))
    write_trajectory(tmp_path / "gt.txt", about_z(still))
    command = ["evaluate", tmp_path / "est.txt", tmp_path / "gt.txt", "--metric", "cmax-slam"]
    figures = json.loads(run(*command, "--json").stdout)
    assert figures["rel_deg_s"] == pytest.approx(2.0, rel=1e-6)
    assert "as published" in run(*command).stdout
    failed = run(*command, "--align-at", "50", code=1)
    assert "--align-at" in failed.stderr
