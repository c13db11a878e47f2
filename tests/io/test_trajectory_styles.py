"""Trajectories in KITTI's and EuRoC's formats, read by evo."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.io.trajectory_files import write_style, write_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory


@pytest.fixture
def trajectory():
    random = np.random.default_rng(0)
    rotations = Rotation.from_rotvec(np.cumsum(random.normal(0, 0.1, (50, 3)), axis=0))
    t_ns = 1_468_941_032_229_417_123 + np.arange(50) * 5_000_000
    return RotationTrajectory(t_ns, rotations.as_quat(), random.normal(size=(50, 3)))


@pytest.fixture
def file_interface(tmp_path, monkeypatch):
    """Import evo's readers, which write their settings to the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return pytest.importorskip("evo.tools.file_interface")


def test_evo_reads_kitti(tmp_path, trajectory, file_interface):
    path = write_style(tmp_path, "kitti", trajectory)
    poses = np.array(file_interface.read_kitti_poses_file(path).poses_se3)
    np.testing.assert_allclose(poses[:, :3, :3], trajectory.rotations.as_matrix(), atol=1e-11)
    np.testing.assert_allclose(poses[:, :3, 3], trajectory.positions_m, atol=1e-11)


def test_evo_reads_euroc(tmp_path, trajectory, file_interface):
    path = write_style(tmp_path, "euroc", trajectory)
    read = file_interface.read_euroc_csv_trajectory(path)
    np.testing.assert_allclose(read.timestamps, trajectory.t_ns / 1e9, atol=1e-6)
    np.testing.assert_allclose(read.orientations_quat_wxyz, trajectory.quaternions_xyzw[:, [3, 0, 1, 2]], atol=1e-11)
    np.testing.assert_allclose(read.positions_xyz, trajectory.positions_m, atol=1e-11)
    assert path.read_text().splitlines()[1].startswith("1468941032229417123,")


def test_positions_that_are_not_known_are_zero_and_tum_needs_no_other_file(tmp_path, trajectory):
    turning = RotationTrajectory(trajectory.t_ns, trajectory.quaternions_xyzw)
    numbers = np.loadtxt(write_style(tmp_path, "kitti", turning)).reshape(-1, 3, 4)
    assert not numbers[:, :, 3].any()
    assert write_style(tmp_path, "tum", turning) is None


def test_evaluate_writes_the_estimate_beside_it_once(tmp_path, trajectory, run):
    write_trajectory(tmp_path / "a.txt", trajectory)
    for style, name in (("kitti", "trajectory_kitti.txt"), ("euroc", "trajectory_euroc.csv")):
        said = run("evaluate", "a.txt", "a.txt", "--output-format", style)
        assert f"the estimate is in {name}, too" in said.stderr
        assert len((tmp_path / name).read_text().splitlines()) == 50 + (style == "euroc")
    assert "exists already" in run("evaluate", "a.txt", "a.txt", "--output-format", "kitti", code=1).stderr
    assert "none of tum, kitti, euroc" in run("evaluate", "a.txt", "a.txt", "--output-format", "x", code=2).stderr
    with pytest.raises(OutputError, match="exists already"):
        write_style(tmp_path, "euroc", trajectory)
