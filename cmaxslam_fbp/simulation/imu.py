"""The inertial measurement unit: a gyroscope and an accelerometer at the camera's centre, in its axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.simulation.motions import Motion
from cmaxslam_fbp.simulation.translations import Translation
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

RATE_HZ = 1000
GRAVITY_M_S2 = np.array([0.0, 9.81, 0.0])  # the world's y points down


@dataclass(frozen=True)
class ImuNoise:
    """White noise and biases of the two sensors; zeros make them perfect.

    Densities are per root hertz. A bias is drawn once with the given standard deviation per axis, and then walks.
    """

    gyro_noise_density_rad_s: float = 1.7e-4
    gyro_bias_rad_s: float = 5e-3
    gyro_bias_walk_rad_s2: float = 2e-5
    accelerometer_noise_density_m_s2: float = 2e-3
    accelerometer_bias_m_s2: float = 5e-2
    accelerometer_bias_walk_m_s3: float = 3e-4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < np.inf:
                raise SimulationError(f"{name}={value} is impossible; give 0 or more")


def measure_motion(
    motion: Motion, duration_ns: int, start_ns: int, noise: ImuNoise, seed: int, translation: Translation | None = None
) -> ImuSamples:
    """Measure a motion at 1 kHz from its start to its end: body rate, and specific force, which points up at rest."""
    times_ns = np.arange(0, duration_ns + 1, NS_PER_S // RATE_HZ, dtype=np.int64)
    times_s = times_ns * 1e-9
    rotations = motion.rotations(times_s)
    force = -np.einsum("kji,j->ki", rotations, GRAVITY_M_S2)
    if translation is not None:
        force += np.einsum("kji,kj->ki", rotations, translation.accelerations(times_s))
    rng = np.random.default_rng([seed, 0x496D75])
    gyro_errors = _errors(
        rng, len(times_ns), noise.gyro_noise_density_rad_s, noise.gyro_bias_rad_s, noise.gyro_bias_walk_rad_s2
    )
    force_errors = _errors(
        rng,
        len(times_ns),
        noise.accelerometer_noise_density_m_s2,
        noise.accelerometer_bias_m_s2,
        noise.accelerometer_bias_walk_m_s3,
    )
    return ImuSamples(times_ns + start_ns, motion.angular_velocities(times_s) + gyro_errors, force + force_errors)


def _errors(rng: np.random.Generator, count: int, density: float, bias: float, walk: float) -> FloatArray:
    """White noise of a density per root hertz, plus a bias that starts at random and walks: (count, 3)."""
    white = density * np.sqrt(RATE_HZ) * rng.standard_normal((count, 3))
    steps = walk / np.sqrt(RATE_HZ) * rng.standard_normal((count, 3))
    return white + bias * rng.standard_normal(3) + np.cumsum(steps, axis=0)
