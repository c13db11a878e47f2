import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation import ImuNoise, PlanarSettings, PlanarSimulation, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.imu import measure_motion
from cmaxslam_fbp.simulation.motions import HandheldMotion
from cmaxslam_fbp.simulation.translations import HandheldTranslation

PERFECT = ImuNoise(0, 0, 0, 0, 0, 0)


def test_a_perfect_gyroscope_integrates_to_the_ground_truth():
    simulation = Simulation(SimulationSettings(duration_s=3.0, imu=PERFECT, seed=2))
    imu, truth = simulation.imu, simulation.ground_truth
    rotation = Rotation.identity()
    angles_deg = []
    middle = (imu.angular_velocity_rad_s[1:] + imu.angular_velocity_rad_s[:-1]) / 2
    for n, rate in enumerate(middle):
        rotation = rotation * Rotation.from_rotvec(rate * 1e-3)
        if (n + 1) % 5 == 0:
            angles_deg.append(np.degrees((truth.rotations[(n + 1) // 5].inv() * rotation).magnitude()))
    assert len(angles_deg) == len(truth) - 1
    assert max(angles_deg) < 0.01


def test_samples_come_every_millisecond_from_start_to_end_in_the_recordings_clock():
    simulation = Simulation(SimulationSettings(duration_s=0.5))
    assert simulation.imu.t_ns[0] == simulation.start_ns
    assert simulation.imu.t_ns[-1] == simulation.start_ns + 500_000_000
    assert (np.diff(simulation.imu.t_ns) == 1_000_000).all()


def test_the_accelerometer_feels_the_floor_push_up():
    motion = HandheldMotion(2.0, 300.0, 60.0, 1)
    imu = measure_motion(motion, 2_000_000_000, 0, PERFECT, 0)
    np.testing.assert_allclose(imu.linear_acceleration_m_s2[0], [0, -9.81, 0], atol=1e-9)
    in_world = np.einsum("kij,kj->ki", motion.rotations(imu.t_ns * 1e-9), imu.linear_acceleration_m_s2)
    np.testing.assert_allclose(in_world, np.tile([0, -9.81, 0], (len(in_world), 1)), atol=1e-9)


def test_a_perfect_accelerometer_integrates_to_the_velocity_also_of_a_camera_that_turns():
    motion, path = HandheldMotion(2.0, 300.0, 60.0, 1), HandheldTranslation(2.0, 1.0, 0.4, 1)
    imu = measure_motion(motion, 2_000_000_000, 0, PERFECT, 0, path)
    times_s = imu.t_ns * 1e-9
    in_world = np.einsum("kij,kj->ki", motion.rotations(times_s), imu.linear_acceleration_m_s2)
    in_world += np.array([0, 9.81, 0])
    velocities = np.cumsum((in_world[1:] + in_world[:-1]) / 2 * 1e-3, axis=0)
    np.testing.assert_allclose(velocities, path.velocities(times_s[1:]), atol=1e-4)
    assert np.abs(velocities).max() > 0.5


def test_the_gyroscope_of_a_camera_that_only_translates_measures_its_own_errors():
    assert (PlanarSimulation(PlanarSettings(duration_s=0.2, imu=PERFECT)).imu.angular_velocity_rad_s == 0).all()
    noisy = PlanarSimulation(PlanarSettings(duration_s=0.2)).imu.angular_velocity_rad_s
    np.testing.assert_allclose(noisy.std(axis=0), 1.7e-4 * np.sqrt(1000), rtol=0.3)


def test_noise_has_the_given_density_and_bias_is_constant_but_for_its_walk():
    motion = HandheldMotion(20.0, 0.0, 60.0, 1)
    noise = ImuNoise(gyro_noise_density_rad_s=1e-3, gyro_bias_rad_s=0.5, gyro_bias_walk_rad_s2=0.0)
    gyro = measure_motion(motion, 20_000_000_000, 0, noise, 4).angular_velocity_rad_s
    np.testing.assert_allclose(gyro.std(axis=0), 1e-3 * np.sqrt(1000), rtol=0.03)
    assert np.abs(gyro.mean(axis=0)).max() > 0.05
    walking = ImuNoise(gyro_noise_density_rad_s=0.0, gyro_bias_rad_s=0.0, gyro_bias_walk_rad_s2=1e-2)
    ends = [measure_motion(motion, 4_000_000_000, 0, walking, seed).angular_velocity_rad_s[-1] for seed in range(60)]
    assert np.std(ends) == pytest.approx(1e-2 * np.sqrt(4.0), rel=0.2)


def test_noise_is_seeded():
    settings = SimulationSettings(duration_s=0.1, seed=3)
    first, again = Simulation(settings).imu, Simulation(settings).imu
    np.testing.assert_array_equal(first.angular_velocity_rad_s, again.angular_velocity_rad_s)
    np.testing.assert_array_equal(first.linear_acceleration_m_s2, again.linear_acceleration_m_s2)


def test_negative_noise_is_refused():
    with pytest.raises(SimulationError, match="gyro_bias_rad_s=-1"):
        ImuNoise(gyro_bias_rad_s=-1)
