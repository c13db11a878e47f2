"""What `calibrate` writes of a gyroscope is what a recording's gyroscope is turned by."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io.calibration import format_opencv_yaml, read_calibration, read_imu_alignment
from cmaxslam_fbp.trajectory import AngularVelocities

ASKEW = Rotation.from_euler("xyz", [10, 70, -30], degrees=True)


def write(path, observed="yes", quaternion=None):
    entries = {
        "quaternion_xyzw": list(ASKEW.as_quat() if quaternion is None else quaternion),
        "time_offset_s": 0.004,
        "bias_rad_s": [0.1, 0.2, 0.3],
        "observed": observed,
    }
    path.write_text(format_opencv_yaml(davis240c(), {"imu_alignment": entries}))
    return path


def test_rates_come_into_the_camera_axes_and_time(tmp_path):
    file = write(tmp_path / "camera.yaml")
    assert read_calibration(file, (240, 180)) == davis240c()
    t_ns, omega = np.arange(5) * 1_000_000, np.random.default_rng(0).normal(size=(5, 3))
    turned = read_imu_alignment(file).apply(AngularVelocities(t_ns, omega))
    np.testing.assert_array_equal(turned.t_ns, t_ns - 4_000_000)
    np.testing.assert_allclose(turned.omega_rad_s, ASKEW.apply(omega - [0.1, 0.2, 0.3]))


def test_what_is_not_observed_is_not_used(tmp_path):
    assert read_imu_alignment(write(tmp_path / "camera.yaml", observed="no")) is None
    (tmp_path / "plain.yaml").write_text(format_opencv_yaml(davis240c()))
    assert read_imu_alignment(tmp_path / "plain.yaml") is None
    assert read_imu_alignment(tmp_path / "calib.txt") is None


def test_a_damaged_section_is_an_error_of_one_line(tmp_path):
    with pytest.raises(CalibrationError, match="imu_alignment is damaged"):
        read_imu_alignment(write(tmp_path / "camera.yaml", quaternion=(1.0, 2.0)))
