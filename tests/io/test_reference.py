"""A reference that cannot be right is told before the work, left out, and destroys nothing."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.io import open_recording

GOOD = {
    "groundtruth_t_ns": np.array([0, 10_000_000]),
    "groundtruth_xyzw": np.array([[0.0, 0, 0, 1], [0, 0, 0, 1]]),
    "groundtruth_positions_m": np.zeros((2, 3)),
    "imu_t_ns": np.array([0, 10_000_000]),
    "imu_angular_velocity_rad_s": np.zeros((2, 3)),
    "imu_linear_acceleration_m_s2": np.zeros((2, 3)),
}
NAN = np.array([[0, 0, 0], [0, np.nan, 0]])


@pytest.fixture
def archive(tmp_path, make_events):
    """Write an archive with a reference, some of it replaced."""

    def write(**changes):
        events = make_events(2000, start_ns=0, duration_ns=10_000_000)
        columns = {name: getattr(events, name) for name in ("t_ns", "x", "y", "p")}
        camera = {"width": 240, "height": 180, "intrinsics": [199.0, 199.0, 120.0, 90.0]}
        np.savez(tmp_path / "a.npz", **{**columns, **camera, **GOOD, **changes})
        return tmp_path / "a.npz"

    return write


def test_a_good_reference_has_no_faults(archive):
    recording = open_recording(archive())
    assert recording.check_reference() == []
    assert len(recording.ground_truth) == len(recording.imu) == 2


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("groundtruth_t_ns", np.array([0.0, 1e7]), "trajectory times are int64 nanoseconds, not float64"),
        ("groundtruth_t_ns", np.array([0, 2**63 + 5], np.uint64), "trajectory times are int64 nanoseconds, not uint64"),
        ("groundtruth_t_ns", np.array([-(2**63), 2**63 - 1]), "a pose has a time of 9223372036854775808 ns"),
        ("groundtruth_t_ns", np.array([5, 5]), "the times of a trajectory must increase"),
        ("groundtruth_positions_m", np.full((2, 99), 5), "do not fit together"),
        ("groundtruth_xyzw", np.zeros((2, 4)), "not of unit length"),
        ("groundtruth_xyzw", np.full((2, 4), np.nan), "not of unit length"),
        ("groundtruth_xyzw", np.full((2, 4), 1e300), "not of unit length"),
        ("groundtruth_xyzw", np.zeros((2, 3)), "do not fit together"),
        ("groundtruth_xyzw", np.array("no"), "do not fit together|no kind of real numbers"),
        ("groundtruth_positions_m", NAN, r"pose 1 has the position \[0.0, nan, 0.0\]"),
        ("groundtruth_positions_m", np.zeros(2), "do not fit together"),
        ("imu_t_ns", np.array([0.0, 1e7]), "IMU times are int64 nanoseconds, not float64"),
        ("imu_angular_velocity_rad_s", NAN, "IMU sample 1 is no measurement"),
        ("imu_linear_acceleration_m_s2", NAN, "IMU sample 1 is no measurement"),
        ("imu_angular_velocity_rad_s", np.full((2, 3), 1e300), "IMU sample 0 is no measurement"),
        ("imu_angular_velocity_rad_s", np.zeros((3, 3)), "do not fit 2 times"),
    ],
)
def test_what_is_wrong_with_a_reference_is_one_line(archive, name, value, complaint):
    recording = open_recording(archive(**{name: value}))
    (line,) = recording.check_reference()
    assert line.startswith("a part of the reference is left out: ")
    assert len(line) < 300
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(line)
    bad = "imu" if name.startswith("imu") else "ground_truth"
    assert getattr(recording, bad) is None
    assert getattr(recording, "ground_truth" if bad == "imu" else "imu") is not None
    assert len(np.concatenate([events.t_ns for events in recording.chunks()])) == 2000


def test_info_and_convert_say_the_line(archive, run, tmp_path):
    path = archive(imu_angular_velocity_rad_s=NAN)
    assert "warning: a part of the reference is left out: IMU sample 1" in run("info", path, "--quiet").stderr
    assert "warning: a part of the reference" in run("convert", path, tmp_path / "b.npz", "--quiet").stderr
    converted = open_recording(tmp_path / "b.npz")
    assert converted.imu is None
    assert len(converted.ground_truth) == 2


def test_evaluate_says_the_line(archive, run, tmp_path):
    (tmp_path / "estimate.txt").write_text("".join(f"{t} 0 0 0 0 0 0 1\n" for t in (0, 0.005, 0.01)))
    said = run("evaluate", tmp_path / "estimate.txt", archive(groundtruth_xyzw=np.zeros((2, 4))), code=1).stderr
    assert "has no reference poses; a part of the reference is left out: pose 0 has the quaternion" in said


def test_a_run_is_finished_whatever_the_reference_is(simulated_bag, tmp_path):
    from cmaxslam_fbp import Slam

    good = tmp_path / "good.npz"
    open_recording(simulated_bag).convert(good, duration_s=0.3)
    with np.load(good) as arrays:
        changed = dict(arrays)
    changed["groundtruth_xyzw"][3] = np.nan
    changed["imu_angular_velocity_rad_s"][7] = np.nan
    np.savez(tmp_path / "bad.npz", **changed)
    result = Slam().run(open_recording(tmp_path / "bad.npz"))
    assert result.evaluation is None
    assert sum(line.startswith("a part of the reference is left out: ") for line in result.warnings) == 2
    assert Slam().run(open_recording(good)).evaluation is not None


def test_several_topics_of_poses_leave_the_reference_out_and_a_wrong_one_is_an_error(
    tmp_path, write_bag, make_events, event_message, pose_message
):
    poses = ("geometry_msgs/msg/PoseStamped", [pose_message(i, (0, 0, 0, 1)) for i in (1, 2)])
    events = ("dvs_msgs/msg/EventArray", [event_message(make_events(10))])
    path = write_bag(tmp_path / "a.bag", {"/dvs/events": events, "/one": poses, "/two": poses})
    (line,) = open_recording(path).check_reference()
    assert "has several pose topics; choose one with --poses-topic: /one, /two" in line
    assert len(open_recording(path, poses_topic="/two").ground_truth) == 2
    with pytest.raises(RecordingError, match="has no pose topic /three"):
        open_recording(path, poses_topic="/three")
