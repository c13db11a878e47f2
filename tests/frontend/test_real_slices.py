"""Cold starts on real events. The velocities were found by exhaustive search over a grid of velocities on blurred
images, refined on fine ones; that of shapes agrees with its gyroscope."""

import numpy as np
import pytest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_imu

pytestmark = pytest.mark.real_data

VELOCITIES = {
    "boxes": (3.667, 4.026, -1.669),
    "poster": (-1.330, -5.386, 7.965),
    "dynamic": (0.499, -2.108, -0.665),
    "shapes": (1.819, -0.665, 1.414),
}


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "linear"}, {"recovery": False}], ids=["default", "linear", "local"]
)
@pytest.mark.parametrize("name", VELOCITIES)
def test_the_motion_is_found_from_zero(real_data, name, settings):
    recording = open_recording(real_data / "slices" / f"{name}_rotation")
    config = FrontendConfig(packets="count", events_per_packet=30_000, **settings)
    (estimate,) = VelocityEstimator(recording.require_camera(), config).run(recording.chunks())
    np.testing.assert_allclose(np.degrees(estimate.velocity), np.degrees(VELOCITIES[name]), atol=4)
    assert estimate.quality > 1.3


def test_shapes_agree_with_the_gyroscope(real_data):
    """Packets of 5,000 events: over the whole slice the velocity changes by 2 rad/s."""
    recording = open_recording(real_data / "slices" / "shapes_rotation")
    gyroscope = read_imu(real_data / "shapes_rotation_imu.txt").gyroscope
    config = FrontendConfig(packets="count", events_per_packet=5000)
    estimates = list(VelocityEstimator(recording.require_camera(), config).run(recording.chunks()))
    expected = gyroscope.at(np.array([e.t_ns for e in estimates]))
    errors = np.degrees([e.velocity for e in estimates] - expected)
    assert np.sqrt(np.mean(errors**2)) < 16  # the paper's figure for this sequence
