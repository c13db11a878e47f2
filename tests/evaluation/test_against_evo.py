"""The absolute error against the evo_ape program, from files that both read."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.io.trajectory_files import read_trajectory, write_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory

EVO_APE = shutil.which(
    "evo_ape", path=os.pathsep.join([sysconfig.get_path("scripts"), os.path.dirname(sys.executable)])
) or shutil.which("evo_ape")


@pytest.mark.skipif(EVO_APE is None, reason="the evo_ape program is not installed")
@pytest.mark.parametrize("rotated_world", [False, True])
def test_first_pose_error_equals_that_of_evo_ape(smooth_motion, tmp_path, rotated_world):
    """On the same stamps nothing is interpolated; `--align_origin` is the alignment of the first pose."""
    epoch_ns = 1468939993067416019
    ground_truth = smooth_motion(0, 3, 100)
    random = np.random.default_rng(3)
    drift = Rotation.from_rotvec(np.cumsum(random.normal(0, 0.005, (len(ground_truth), 3)), axis=0))
    estimated = ground_truth.rotations * drift[0].inv() * drift  # starts at the first pose of the ground truth
    if rotated_world:
        estimated = Rotation.from_rotvec([0.4, 1.0, -2.0]) * estimated
    write_trajectory(
        tmp_path / "gt.txt", RotationTrajectory(ground_truth.t_ns + epoch_ns, ground_truth.quaternions_xyzw)
    )
    write_trajectory(tmp_path / "est.txt", RotationTrajectory.from_rotations(ground_truth.t_ns + epoch_ns, estimated))

    options = ["--align_origin"] if rotated_world else []
    command = [EVO_APE, "tum", "gt.txt", "est.txt", "-r", "angle_deg", *options, "--save_results", "ape.zip"]
    home = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "MPLCONFIGDIR")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **home}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(tmp_path / "ape.zip") as archive:
        theirs = json.loads(archive.read("stats.json"))

    ours = evaluate(read_trajectory(tmp_path / "est.txt"), read_trajectory(tmp_path / "gt.txt"))
    assert ours.poses == 301
    assert theirs["rmse"] > 1  # there is something to compare
    assert ours.absolute_first_pose_rms_deg == pytest.approx(theirs["rmse"], rel=1e-7)
    assert ours.absolute_first_pose_max_deg == pytest.approx(theirs["max"], rel=1e-7)
    assert ours.absolute_first_pose_median_deg == pytest.approx(theirs["median"], rel=1e-7)
