"""A smooth motion that the tests of the evaluation share."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.trajectory import RotationTrajectory


@pytest.fixture(scope="session")
def smooth_rotation():
    """Hand-held-like rotation as a function of times in ns: three axes, up to about 200 deg/s."""

    def rotation(t_ns):
        t = np.asarray(t_ns) / 1e9
        angles = np.stack([0.9 * np.sin(2.1 * t), 0.7 * np.sin(3.7 * t + 0.4), 0.5 * np.sin(5.3 * t + 1.0)], -1)
        return Rotation.from_euler("yxz", angles)

    return rotation


@pytest.fixture(scope="session")
def smooth_motion(smooth_rotation):
    """Sample the smooth motion: `smooth_motion(start_s, end_s, rate_hz, lag_ns)`."""

    def sample(start_s, end_s, rate_hz, lag_ns=0):
        t_ns = np.arange(round(start_s * 1e9), round(end_s * 1e9) + 1, round(1e9 / rate_hz), dtype=np.int64)
        return RotationTrajectory.from_rotations(t_ns, smooth_rotation(t_ns - lag_ns))

    return sample
