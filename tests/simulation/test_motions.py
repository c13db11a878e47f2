import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import HandheldMotion, SampledMotion
from cmaxslam_fbp.simulation.recording import ground_truth_times_ns
from cmaxslam_fbp.trajectory import RotationTrajectory


def finite_difference_rates(motion, t_s, step_s=1e-5):
    before = Rotation.from_matrix(motion.rotations(t_s - step_s))
    after = Rotation.from_matrix(motion.rotations(t_s + step_s))
    return (before.inv() * after).as_rotvec() / (2 * step_s)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize(("duration_s", "peak_deg_s"), [(0.5, 100.0), (5.0, 400.0), (30.0, 900.0)])
def test_handheld_motion_reaches_its_peak_speed_and_stays_within_its_extent(duration_s, peak_deg_s, seed):
    motion = HandheldMotion(duration_s, peak_deg_s, 40.0, seed)
    t_s = np.linspace(0, duration_s, int(2000 * duration_s) + 1)
    speeds = np.degrees(np.linalg.norm(motion.angular_velocities(t_s), axis=1))
    assert speeds.max() == pytest.approx(peak_deg_s, rel=0.01)
    yaw, pitch, roll = np.abs(Rotation.from_matrix(motion.rotations(t_s)).as_euler("YXZ", degrees=True)).T
    assert yaw.max() <= 40.0
    assert pitch.max() <= 24.0
    assert roll.max() <= 28.0


def test_handheld_motion_starts_at_rest_at_the_identity():
    motion = HandheldMotion(3.0, 300.0, 40.0, 3)
    np.testing.assert_allclose(motion.rotations([0.0])[0], np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(motion.angular_velocities([0.0]), 0)


def test_handheld_motion_of_speed_zero_rests():
    motion = HandheldMotion(1.0, 0.0, 40.0, 3)
    np.testing.assert_allclose(motion.rotations([0.0, 0.5, 1.0]), np.tile(np.eye(3), (3, 1, 1)), atol=1e-12)


def test_handheld_angular_velocity_is_the_derivative_in_the_body_frame():
    motion = HandheldMotion(4.0, 500.0, 50.0, 5)
    t_s = np.linspace(0.01, 3.99, 200)
    np.testing.assert_allclose(motion.angular_velocities(t_s), finite_difference_rates(motion, t_s), atol=2e-4)


def test_handheld_motion_depends_on_its_seed_only():
    first, again, other = (HandheldMotion(2.0, 200.0, 30.0, seed).rotations([1.7]) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize(
    ("arguments", "word"),
    [((0.0, 1.0, 30.0), "duration"), ((1.0, -1.0, 30.0), "speed"), ((1.0, 1.0, 0.0), "extent")],
)
def test_impossible_motions_are_refused_in_one_line(arguments, word):
    with pytest.raises(SimulationError, match=word) as failure:
        HandheldMotion(*arguments, 0)
    assert "\n" not in str(failure.value)


def sampled(motion, noise_rad=0.0, keep=None, sign_flips=False):
    t_ns = ground_truth_times_ns(round(motion.duration_s * 1e9))
    rng = np.random.default_rng(0)
    rotations = Rotation.from_matrix(motion.rotations(t_ns * 1e-9))
    rotations = rotations * Rotation.from_rotvec(noise_rad * rng.standard_normal((len(t_ns), 3)))
    quaternions = rotations.as_quat()
    if sign_flips:
        quaternions[::2] *= -1
    keep = np.ones(len(t_ns), bool) if keep is None else keep(t_ns * 1e-9)
    return RotationTrajectory(t_ns[keep] + 12_345_000_000_000, quaternions[keep])


def test_sampled_motion_follows_a_smooth_trajectory_closely():
    truth = HandheldMotion(4.0, 500.0, 40.0, 2)
    motion = SampledMotion(sampled(truth, sign_flips=True))
    t_s = np.linspace(0, 4.0, 3001)
    difference = Rotation.from_matrix(truth.rotations(t_s)).inv() * Rotation.from_matrix(motion.rotations(t_s))
    assert np.degrees(difference.magnitude()).max() < 0.02
    rates = motion.angular_velocities(t_s) - truth.angular_velocities(t_s)
    assert np.degrees(np.linalg.norm(rates, axis=1)).max() < 4.0


def test_sampled_motion_averages_noise_away():
    truth = HandheldMotion(4.0, 300.0, 40.0, 2)
    noise_rad = 1e-3
    motion = SampledMotion(sampled(truth, noise_rad))
    t_s = np.linspace(0.1, 3.9, 3001)
    start = Rotation.from_matrix(motion.rotations([0.0])[0])
    smoothed = Rotation.from_matrix(SampledMotion(sampled(truth, noise_rad), start_at_identity=False).rotations(t_s))
    error = (Rotation.from_matrix(truth.rotations(t_s)).inv() * smoothed).as_rotvec()
    assert np.sqrt((error**2).mean()) < 0.7 * noise_rad
    assert start.magnitude() < 1e-12
    rates = motion.angular_velocities(t_s) - truth.angular_velocities(t_s)
    finite_differences = np.sqrt(2) * noise_rad / 0.005
    assert np.sqrt((rates**2).mean()) < 0.5 * finite_differences


def test_sampled_motion_is_consistent_with_its_own_rate_across_gaps():
    truth = HandheldMotion(3.0, 200.0, 40.0, 2)
    motion = SampledMotion(sampled(truth, 1e-3, keep=lambda t: (t < 1.0) | (t > 1.065)))
    t_s = np.linspace(0.01, 2.99, 500)
    np.testing.assert_allclose(motion.angular_velocities(t_s), finite_difference_rates(motion, t_s), atol=1e-3)


def test_sampled_motion_can_interpolate_or_keep_the_frame():
    truth = HandheldMotion(1.0, 100.0, 40.0, 2)
    trajectory = sampled(truth)
    turned = RotationTrajectory.from_rotations(
        trajectory.t_ns, Rotation.from_euler("YXZ", [70, 20, 10], degrees=True) * trajectory.rotations
    )
    kept = SampledMotion(turned, samples_per_knot=1, start_at_identity=False)
    t_s = (turned.t_ns - turned.start_ns) * 1e-9
    np.testing.assert_allclose(kept.rotations(t_s), turned.rotations.as_matrix(), atol=1e-9)
    np.testing.assert_allclose(SampledMotion(turned).rotations([0.0])[0], np.eye(3), atol=1e-12)


def test_broken_trajectories_are_refused():
    short = RotationTrajectory(np.arange(5, dtype=np.int64), np.tile([0.0, 0, 0, 1], (5, 1)))
    with pytest.raises(SimulationError, match="too short"):
        SampledMotion(short)
    jump = np.tile([0.0, 0, 0, 1], (20, 1))
    jump[10:] = [1.0, 0, 0, 0]
    with pytest.raises(SimulationError, match="poses 9 and 10"):
        SampledMotion(RotationTrajectory(np.arange(20, dtype=np.int64) * 5_000_000, jump))


def test_ground_truth_times_include_the_end():
    np.testing.assert_array_equal(ground_truth_times_ns(12_000_000), [0, 5_000_000, 10_000_000, 12_000_000])
    np.testing.assert_array_equal(ground_truth_times_ns(10_000_000), [0, 5_000_000, 10_000_000])


@pytest.mark.real_data
def test_a_real_trajectory_moves_as_fast_as_its_gyroscope_says(real_data):
    poses = np.loadtxt(real_data / "shapes_rotation_groundtruth.txt")
    imu = np.loadtxt(real_data / "shapes_rotation_imu.txt")[1000:-1000]
    trajectory = RotationTrajectory((poses[:, 0] * 1e9).astype(np.int64), poses[:, 4:])
    motion = SampledMotion(trajectory)
    latency_s = 0.005  # of the motion capture against the IMU
    rates = motion.angular_velocities(imu[:, 0] - poses[0, 0] + latency_s)
    difference = np.linalg.norm(rates, axis=1) - np.linalg.norm(imu[:, 4:7], axis=1)
    assert np.degrees(np.sqrt((difference**2).mean())) < 12
