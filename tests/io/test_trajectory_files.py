"""Trajectories and gyroscope samples as text files."""

import os
import time
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmaxslam_fbp.errors import OutputError, TrajectoryError
from cmaxslam_fbp.io import trajectory_files
from cmaxslam_fbp.io.trajectory_files import format_seconds, read_imu, read_trajectory, write_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory

IDENTITY = "0 0 0 0 0 0 1"


def parse_trajectory(text, source):
    return trajectory_files.parse_trajectory(BytesIO(text.encode()), source)


def parse_imu(text, source):
    return trajectory_files.parse_imu(BytesIO(text.encode()), source)


def random_trajectory(count, start_ns=0, seed=0):
    random = np.random.default_rng(seed)
    t_ns = start_ns + np.cumsum(random.integers(1, 10_000_000, count)).astype(np.int64)
    quaternions = random.normal(size=(count, 4))
    return RotationTrajectory(t_ns, quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))


def error_of(text):
    with pytest.raises(TrajectoryError) as caught:
        parse_trajectory(text, source="poses.txt")
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_columns_are_in_tum_order():
    trajectory = parse_trajectory(
        "# comment\n\n0.5 1 2 3 0.6 0.0 0.0 0.8\n1.25 4 5 6 0 0.28 0 0.96  # tail\n", source="f"
    )
    assert trajectory.t_ns.tolist() == [500_000_000, 1_250_000_000]
    np.testing.assert_allclose(trajectory.quaternions_xyzw, [[0.6, 0, 0, 0.8], [0, 0.28, 0, 0.96]], atol=1e-15)


def test_gyroscope_is_the_last_three_columns():
    samples = parse_imu("0.015972 0.4 -9.9 -0.1 0.06 0.04 -0.02 \n0.016974 1 2 3 4 5 6 \n", source="f").gyroscope
    assert samples.t_ns.tolist() == [15_972_000, 16_974_000]
    assert samples.omega_rad_s.tolist() == [[0.06, 0.04, -0.02], [4, 5, 6]]


@pytest.mark.parametrize(
    ("stamp", "nanoseconds"),
    [
        ("1468939993.067416019", 1468939993067416019),
        ("1468939993.067416019000", 1468939993067416019),
        ("1.468939993067416019e+09", 1468939993067416019),
        ("1468939993.0674160196", 1468939993067416020),
        ("-0.000000001", -1),
        ("1", 1_000_000_000),
        (".5", 500_000_000),
        ("2.", 2_000_000_000),
    ],
)
def test_stamps_keep_every_nanosecond(stamp, nanoseconds):
    trajectory = parse_trajectory(f"{stamp} {IDENTITY}\n2000000000 {IDENTITY}\n", source="f")
    assert trajectory.t_ns[0] == nanoseconds


@settings(deadline=None)
@given(st.integers(-(2**61), 2**61))
def test_seconds_are_written_exactly(t_ns):
    text = format_seconds(t_ns)
    assert len(text.split(".")[1]) == 9
    trajectory = parse_trajectory(f"{text} {IDENTITY}\n2400000000 {IDENTITY}\n", source="f")
    assert trajectory.t_ns[0] == t_ns


@pytest.mark.parametrize("start_ns", [0, 1468939993067416019, -3_000_000_007])
def test_a_written_trajectory_is_read_back(tmp_path, start_ns):
    trajectory = random_trajectory(50, start_ns)
    path = tmp_path / "trajectory.txt"
    write_trajectory(path, trajectory)
    again = read_trajectory(path)
    assert (again.t_ns == trajectory.t_ns).all()
    np.testing.assert_allclose(again.quaternions_xyzw, trajectory.quaternions_xyzw, atol=1e-12, rtol=0)
    assert os.listdir(tmp_path) == ["trajectory.txt"]
    columns = path.read_text().splitlines()[1].split()
    assert len(columns) == 8
    assert [float(column) for column in columns[1:4]] == [0, 0, 0]
    assert all(len(column.split(".")[1]) >= 9 for column in columns[4:])


def test_writing_replaces_an_existing_file(tmp_path):
    path = tmp_path / "trajectory.txt"
    path.write_text("old")
    write_trajectory(path, random_trajectory(3))
    assert len(read_trajectory(path)) == 3


def test_writing_to_a_missing_folder_says_so(tmp_path):
    with pytest.raises(OutputError, match=r"cannot write .*missing.*folder that exists"):
        write_trajectory(tmp_path / "missing" / "trajectory.txt", random_trajectory(3))


def test_a_failed_write_leaves_no_file_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken"):
        write_trajectory(tmp_path / "taken", random_trajectory(3))
    assert os.listdir(tmp_path) == ["taken"]
    assert os.listdir(tmp_path / "taken") == []


def test_a_repeated_line_is_dropped_once_or_more():
    line = f"1.0 {IDENTITY}\n"
    trajectory = parse_trajectory(line * 3 + f"2.0 {IDENTITY}\n" * 2, source="f")
    assert trajectory.t_ns.tolist() == [1_000_000_000, 2_000_000_000]


def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbf0.5 0 0 0 0 0 0 1\r\n1.5 0 0 0 0 0 0 1\r\n")
    assert read_trajectory(path).t_ns.tolist() == [500_000_000, 1_500_000_000]


def test_a_missing_file_is_named(tmp_path):
    for read in (read_trajectory, read_imu):
        with pytest.raises(TrajectoryError, match=r"nowhere\.txt: no such file"):
            read(tmp_path / "nowhere.txt")


def test_a_folder_or_a_binary_file_is_named(tmp_path):
    with pytest.raises(TrajectoryError, match="cannot be read"):
        read_trajectory(tmp_path)
    (tmp_path / "binary").write_bytes(b"\x00\xff\xfe" * 10)
    with pytest.raises(TrajectoryError, match="not a text file"):
        read_trajectory(tmp_path / "binary")


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n"])
def test_a_file_without_samples_says_which_columns_it_needs(text):
    message = error_of(text)
    assert message.startswith("poses.txt: ")
    assert "t tx ty tz qx qy qz qw" in message


@pytest.mark.parametrize(
    ("second_line", "words"),
    [
        ("2 0 0 0 0 0 1", "7 columns instead of 8"),
        ("2,0,0,0,0,0,0,1", "1 columns instead of 8"),
        (f"2 {IDENTITY} 0", "9 columns instead of 8"),
        ("2 0 0 0 0 0 nan 1", "'nan' is not a finite number"),
        ("2 0 0 inf 0 0 0 1", "'inf' is not a finite number"),
        ("2 0 0 0 0 0 x 1", "'x' is not a finite number"),
        (f"nan {IDENTITY}", "'nan' is not a number"),
        (f"inf {IDENTITY}", "'inf' is not a number"),
        (f"1e999990 {IDENTITY}", "1e999990 is too large for seconds"),
        (f"-1e999999 {IDENTITY}", "is too large for seconds"),
        ("2 0 0 0 1e300 0 0 1", "not of unit length"),
        (f"two {IDENTITY}", "'two' is not a number"),
        (f"1403636579763555584 {IDENTITY}", "divide by 1e9"),
        ("2 0 0 0 0 0 0 0", "not of unit length"),
        ("2 0 0 0 0 0.02 0 1.02", "not of unit length"),
        (f"0.5 {IDENTITY}", "0.500000000 does not come after 1.000000000 (line 2)"),
        ("1 0 0 0 0 0 1 0", "1.000000000 does not come after 1.000000000 (line 2)"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(second_line, words):
    message = error_of(f"# header\n1 {IDENTITY}\n{second_line}\n3 {IDENTITY}\n")
    assert message.startswith("poses.txt, line 3: ")
    assert words in message


def test_a_single_pose_is_no_trajectory():
    assert "at least two poses, not 1" in error_of(f"1 {IDENTITY}\n")


def test_quaternions_of_four_decimals_are_accepted():
    trajectory = parse_trajectory("0 0 0 0 0.5202 -0.4965 0.5048 -0.4775\n1 0 0 0 0 0 0 1\n", source="four decimals")
    assert np.linalg.norm(trajectory.quaternions_xyzw[0]) == pytest.approx(1, abs=1e-15)


def test_a_bad_gyroscope_line_is_named():
    with pytest.raises(TrajectoryError, match=r"^imu\.txt, line 2: 6 columns instead of 7; .*t ax ay"):
        parse_imu("0 0 0 0 0 0 0\n1 0 0 0 0 0\n", source="imu.txt")


def test_a_minute_at_one_kilohertz_is_read_in_a_second(tmp_path):
    path = tmp_path / "long.txt"
    write_trajectory(path, random_trajectory(60_000, 1468939993067416019))
    began = time.process_time()
    assert len(read_trajectory(path)) == 60_000
    assert time.process_time() - began < 2.0  # 0.3 s


@pytest.mark.real_data
def test_the_ecd_ground_truth_and_imu_are_read():
    folder = os.environ.get("CMAXSLAM_FBP_DATA")
    if not folder:
        pytest.skip("CMAXSLAM_FBP_DATA is not set")
    trajectory = read_trajectory(os.path.join(folder, "shapes_rotation_groundtruth.txt"))
    assert len(trajectory) == 11883
    assert trajectory.start_ns == 21_819_287
    gyroscope = read_imu(os.path.join(folder, "shapes_rotation_imu.txt")).gyroscope
    assert len(gyroscope) == 59667
    # Mean rates over 50 ms about the camera's own axes: the frame, the units and the clock are the same.
    times, half_ns = np.arange(5_000_000_000, 55_000_000_000, 10_000_000), 25_000_000
    turned = trajectory.rotation_at(times - half_ns).inv() * trajectory.rotation_at(times + half_ns)
    gyro = np.mean([gyroscope.at(times + d) for d in range(-half_ns, half_ns + 1, 5_000_000)], axis=0)
    for mocap_axis, gyro_axis in zip(turned.as_rotvec().T / 0.05, gyro.T, strict=True):
        assert np.corrcoef(mocap_axis, gyro_axis)[0, 1] > 0.98
        assert mocap_axis.std() == pytest.approx(gyro_axis.std(), rel=0.05)
