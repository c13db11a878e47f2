import csv
import os

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.linear_velocity import camera_velocities, linear_velocity_errors
from cmaxslam_fbp.frontend.velocity_file import write_velocities
from cmaxslam_fbp.trajectory import RotationTrajectory


def estimate(t_ns, velocity):
    return VelocityEstimate(
        t_ns=t_ns,
        velocity=np.array(velocity, float),
        covariance=np.diag([0.01, 0.04, 0.09]),
        score=2.5,
        quality=1.25,
        evaluations=3,
        hessians=1,
        status=EstimateStatus.CONVERGED,
        events=20_000,
        seconds=0.001,
    )


def test_the_table_keeps_times_to_the_nanosecond(tmp_path):
    path = tmp_path / "new" / "velocity.csv"
    write_velocities(path, [estimate(1_468_941_032_229_417_001, [1, -2, 3e-5]), estimate(-5, [0, 0, 0])], "angular")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert rows[0]["t_s"] == "1468941032.229417001"
    assert rows[1]["t_s"] == "-0.000000005"
    assert [float(rows[0][f"w{axis}_rad_s"]) for axis in "xyz"] == [1, -2, 3e-5]
    assert [float(rows[0][f"std_w{axis}_rad_s"]) for axis in "xyz"] == pytest.approx([0.1, 0.2, 0.3])
    assert (rows[0]["score"], rows[0]["evaluations"], rows[0]["status"]) == ("2.5", "3", "converged")
    assert (rows[0]["quality"], rows[0]["events"]) == ("1.25", "20000")
    assert os.listdir(path.parent) == ["velocity.csv"]


def test_linear_velocities_have_their_own_columns(tmp_path):
    write_velocities(tmp_path / "v.csv", [], "linear")
    assert (tmp_path / "v.csv").read_text().startswith("t_s,vx_m_s,vy_m_s,vz_m_s,")


def test_a_folder_that_cannot_be_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_velocities(tmp_path / "file" / "velocity.csv", [], "angular")


def poses():
    """A circle of radius 2 m at 0.5 rad/s about z, the camera turning with it."""
    t_ns = np.arange(0, 4_000_000_001, 5_000_000)
    angle = 0.5 * t_ns * 1e-9
    position = 2 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
    return RotationTrajectory(t_ns, Rotation.from_rotvec(angle[:, None] * [0, 0, 1]).as_quat(), position)


def test_reference_velocities_are_in_the_cameras_frame():
    velocities = camera_velocities(poses(), np.array([1_234_000_000, 3_000_000_000]))
    np.testing.assert_allclose(velocities, [[0, 1, 0], [0, 1, 0]], atol=1e-5)


def test_linear_errors_are_given_at_one_metre_and_at_the_best_depth():
    estimates = [estimate(t, [0, 0.5, 0]) for t in (10**9, 2 * 10**9, 99 * 10**9)]
    errors = linear_velocity_errors(estimates, poses())
    assert errors.count == 2
    assert errors.rms_m_s == pytest.approx(0.5, abs=1e-4)
    assert errors.rms_per_axis_m_s == pytest.approx(0.5 / np.sqrt(3), abs=1e-4)
    assert errors.depth_m == pytest.approx(2, abs=1e-3)
    assert errors.rms_at_depth_m_s == pytest.approx(0, abs=1e-4)
    assert linear_velocity_errors(estimates[2:], poses()) is None
