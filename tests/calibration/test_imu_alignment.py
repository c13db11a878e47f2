"""A gyroscope that lies askew, runs late and has a bias is found; one axis alone does not tell the rotation."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.calibration.imu_alignment import align_gyroscope
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

ASKEW = Rotation.from_euler("xyz", [80, -15, 120], degrees=True)
BIAS = np.array([0.02, -0.01, 0.03])


def made_gyroscope(axes, offset_s=0.0073, ratio=1.0):
    """A camera that wanders about some axes, and its gyroscope: omega_camera = R (omega_imu(t + offset) - bias).

    Across its optical axis the camera sees the rates by a ratio too large, as through too short a lens.
    """
    t_s = np.arange(0, 4, 0.02)
    angles = np.stack([0.3 * np.sin(2.1 * t_s), 0.2 * np.sin(3.3 * t_s + 1), 0.25 * np.cos(1.7 * t_s)], axis=1) * axes
    spline = RotationSpline(4, 10**18, 20_000_000, Rotation.from_euler("yxz", angles).as_quat())
    t_ns = np.arange(spline.start_ns, spline.end_ns, 1_000_000, dtype=np.int64)
    omega = ASKEW.inv().apply(spline.angular_velocities_at(t_ns) / [ratio, ratio, 1.0]) + BIAS
    return spline, AngularVelocities(t_ns + round(offset_s * 1e9), omega)


def test_rotation_offset_and_bias_are_found():
    found = align_gyroscope(*made_gyroscope([1, 1, 1]))
    assert (Rotation.from_quat(found.quaternion_xyzw) * ASKEW.inv()).magnitude() < 1e-4
    assert found.time_offset_s == pytest.approx(0.0073, abs=2e-5)
    np.testing.assert_allclose(found.bias_rad_s, BIAS, atol=1e-4)
    assert found.rate_ratio == pytest.approx(1.0, abs=1e-4)
    assert found.rms_deg_s < 0.02
    assert found.observed


@pytest.mark.parametrize("ratio", [0.6, 1.05, 1.8])
def test_a_wrong_focal_length_shows_in_the_ratio_of_the_rates_across_the_axis(ratio):
    """And does not turn the axes that are found."""
    found = align_gyroscope(*made_gyroscope([1, 1, 1], ratio=ratio))
    assert found.rate_ratio == pytest.approx(ratio, rel=1e-3)
    assert (Rotation.from_quat(found.quaternion_xyzw) * ASKEW.inv()).magnitude() < 1e-3


@pytest.mark.parametrize("axes", [[1, 0, 0], [0, 1, 0], [0.005, 0.005, 1]], ids=["pan", "tilt", "roll"])
def test_the_deviation_of_the_ratio_covers_its_error(axes, random):
    """A camera whose rates err by about 1 deg/s: a pan or a tilt tells the ratio, a roll hardly does."""
    spline, gyroscope = made_gyroscope(axes, ratio=1.3)
    true, off = Rotation.from_quat(spline.quaternions_xyzw), []
    for _ in range(6):
        shaken = true * Rotation.from_rotvec(2e-4 * random.normal(size=(len(spline), 3)))
        found = align_gyroscope(RotationSpline(4, 10**18, 20_000_000, shaken.as_quat()), gyroscope)
        off.append((found.rate_ratio - 1.3) / found.rate_ratio_deviation)
        assert (found.rate_ratio_deviation < 0.05) == (axes[2] == 0)
    assert np.sqrt(np.mean(np.square(off))) < 1.5


def test_one_axis_does_not_tell_the_rotation():
    assert not align_gyroscope(*made_gyroscope([1, 0, 0])).observed


def test_a_gyroscope_of_another_time_is_no_gyroscope():
    spline, gyroscope = made_gyroscope([1, 1, 1])
    later = AngularVelocities(gyroscope.t_ns + 10**11, gyroscope.omega_rad_s)
    assert align_gyroscope(spline, later) is None
