import csv
import os
from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.frontend import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.motion_models import FirstOrderRotation, PlaneTranslation
from cmaxslam_fbp.io.trajectory_files import write_velocities


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
    estimates = [estimate(1_468_941_032_229_417_001, [1, -2, 3e-5]), estimate(-5, [0, 0, 0])]
    write_velocities(path, estimates, FirstOrderRotation.parameters)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert rows[0]["t_s"] == "1468941032.229417001"
    assert rows[1]["t_s"] == "-0.000000005"
    assert [float(rows[0][f"w{axis}_rad_s"]) for axis in "xyz"] == [1, -2, 3e-5]
    assert [float(rows[0][f"std_w{axis}_rad_s"]) for axis in "xyz"] == pytest.approx([0.1, 0.2, 0.3])
    assert (rows[0]["score"], rows[0]["evaluations"], rows[0]["status"]) == ("2.5", "3", "converged")
    assert (rows[0]["quality"], rows[0]["events"]) == ("1.25", "20000")
    assert os.listdir(path.parent) == ["velocity.csv"]


def test_the_columns_are_the_parameters_of_the_motion_model(tmp_path):
    write_velocities(tmp_path / "v.csv", [], PlaneTranslation.parameters)
    assert (tmp_path / "v.csv").read_text().startswith("t_s,vx_m_s,vy_m_s,vz_m_s,")
    two = replace(estimate(0, [1, 2]), covariance=np.diag([4.0, 9.0]))
    write_velocities(tmp_path / "v.csv", [two], ("zoom_per_s", "roll_rad_s"))
    (row,) = csv.DictReader((tmp_path / "v.csv").read_text().splitlines())
    assert (float(row["roll_rad_s"]), float(row["std_roll_rad_s"]), row["events"]) == (2, 3, "20000")


def test_a_folder_that_cannot_be_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_velocities(tmp_path / "file" / "velocity.csv", [], FirstOrderRotation.parameters)
