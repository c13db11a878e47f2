import numpy as np
import pytest

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera, davis240c, dvxplorer
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


def make_source(camera):
    """A made-up recording, without events."""
    t_ns = 1_468_941_032_229_000_001 + np.arange(30) * 5_000_000
    quaternions = np.random.default_rng(0).normal(size=(30, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1)[:, None]
    positions = np.random.default_rng(1).normal(size=(30, 3))
    values = np.random.default_rng(2).normal(size=(30, 6))
    poses, imu = RotationTrajectory(t_ns, quaternions, positions), ImuSamples(t_ns, values[:, :3], values[:, 3:])
    return Recording.from_events([], camera=camera, ground_truth=poses, imu=imu)


FISHEYE = Camera(346, 260, 200.0, 201.0, 170.0, 130.0, (0.01, -0.02, 0.003, 0.0004), "equidistant")


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a.zip", "a"])
@pytest.mark.parametrize("camera", [davis240c(), dvxplorer(), FISHEYE], ids=["davis240c", "dvxplorer", "fisheye"])
def test_what_is_written_is_read_back(tmp_path, name, camera, make_events, assert_same_events):
    source = make_source(camera)
    events = make_events(5000, duration_ns=100_000_000, width=camera.width, height=camera.height)
    chunks = [events[:3000], Events.empty(), events[3000:]]
    written = write_recording(source, chunks, tmp_path / name)
    assert (written.events, written.interrupted) == (5000, False)
    assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing is left beside it
    recording = open_recording(tmp_path / name)
    assert_same_events(Events.concatenate(recording.chunks()), events)
    assert recording.camera == camera
    assert recording.sensor_size == source.sensor_size
    np.testing.assert_array_equal(recording.ground_truth.t_ns, source.ground_truth.t_ns)
    np.testing.assert_allclose(
        recording.ground_truth.quaternions_xyzw, source.ground_truth.quaternions_xyzw, atol=2e-12
    )
    np.testing.assert_allclose(recording.ground_truth.positions_m, source.ground_truth.positions_m, atol=1e-9)
    np.testing.assert_array_equal(recording.imu.t_ns, source.imu.t_ns)
    np.testing.assert_allclose(recording.imu.angular_velocity_rad_s, source.imu.angular_velocity_rad_s, atol=1e-9)
    np.testing.assert_allclose(recording.imu.linear_acceleration_m_s2, source.imu.linear_acceleration_m_s2, atol=1e-9)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_an_independent_reader_understands_the_bag(tmp_path, compression, make_events):
    """Read what we wrote with rosbags' typed deserialisation, and the layout of an ECD bag."""
    from pathlib import Path

    from rosbags.highlevel import AnyReader

    source = make_source(davis240c())
    events = make_events(300)
    write_recording(source, [events], tmp_path / "a.bag", compression=compression)
    with AnyReader([Path(tmp_path / "a.bag")]) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        assert kinds == {
            "/dvs/events": "dvs_msgs/msg/EventArray",
            "/dvs/camera_info": "sensor_msgs/msg/CameraInfo",
            "/dvs/imu": "sensor_msgs/msg/Imu",
            "/optitrack/davis": "geometry_msgs/msg/PoseStamped",
        }
        digests = {connection.topic: connection.digest for connection in reader.connections}
        assert digests["/dvs/events"] == "5e8beee5a6c107e504c2e78903c224b8"  # that of the real dvs_msgs
        rows, stamps = [], []
        for connection, stamp_ns, data in reader.messages():
            stamps.append(stamp_ns)
            if connection.topic == "/dvs/events":
                message = reader.deserialize(data, connection.msgtype)
                assert (message.width, message.height) == (240, 180)
                rows += [(e.ts.sec * 10**9 + e.ts.nanosec, e.x, e.y, e.polarity) for e in message.events]
    assert stamps == sorted(stamps)
    expected = zip(events.t_ns.tolist(), events.x.tolist(), events.y.tolist(), events.p.astype(bool), strict=True)
    assert rows == list(expected)


def test_a_recording_converts_itself(tmp_path, make_events, assert_same_events):
    events = make_events(500)
    write_recording(make_source(davis240c()), [events], tmp_path / "a.bag")
    assert open_recording(tmp_path / "a.bag").convert(tmp_path / "b.npz") == 500
    assert open_recording(tmp_path / "b.npz").convert(tmp_path / "c", start_s=0.01, duration_s=0.02) < 500
    cut = Events.concatenate(open_recording(tmp_path / "c").chunks())
    first_ns = int(events.t_ns[0]) + 10_000_000
    assert_same_events(cut, events.between(first_ns, first_ns + 20_000_000))


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a.zip", "a"])
def test_an_interrupted_writing_keeps_the_events_so_far(tmp_path, name, make_events, assert_same_events):
    events = make_events(100)

    def chunks():
        yield events[:60]
        raise KeyboardInterrupt

    written = write_recording(make_source(davis240c()), chunks(), tmp_path / name)
    assert (written.events, written.interrupted) == (60, True)
    assert_same_events(Events.concatenate(open_recording(tmp_path / name).chunks()), events[:60])


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a.zip", "a"])
def test_a_failing_source_leaves_nothing_behind_and_the_old_file_alone(tmp_path, name, make_events, assert_same_events):
    events = make_events(100)
    write_recording(make_source(davis240c()), [events], tmp_path / name)

    def chunks():
        yield events[:60]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_recording(make_source(davis240c()), chunks(), tmp_path / name, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert_same_events(Events.concatenate(open_recording(tmp_path / name).chunks()), events)


def test_existing_outputs_unknown_endings_and_missing_folders(tmp_path, make_events):
    source, events = Recording.from_events([], camera=davis240c()), make_events(10)
    (tmp_path / "a.bag").write_text("precious")
    with pytest.raises(OutputError, match="exists already; choose another name, or give --overwrite"):
        write_recording(source, [events], tmp_path / "a.bag")
    assert (tmp_path / "a.bag").read_text() == "precious"
    write_recording(source, [events], tmp_path / "a.bag", overwrite=True)
    assert len(Events.concatenate(open_recording(tmp_path / "a.bag").chunks())) == 10
    with pytest.raises(OutputError, match=r"use .*\.bag, .*\.npz, .*\.zip"):
        write_recording(source, [events], tmp_path / "a.raw")
    with pytest.raises(OutputError, match=r"cannot write .*No such file or directory"):
        write_recording(source, [events], tmp_path / "missing" / "a.bag")


@pytest.mark.parametrize("t_ns", [[-5, 7], [2**31 * 10**9, 2**31 * 10**9 + 7]])
def test_times_that_a_bag_cannot_hold_are_one_line_and_leave_no_file(tmp_path, t_ns):
    recording = Recording.from_events(Events.from_arrays(np.array(t_ns), [1, 1], [1, 1], [1, 1]), sensor_size=(4, 4))
    with pytest.raises(OutputError, match=r"a ROS 1 bag holds times from 0 to 2\^31 s, not .* write an \.npz"):
        recording.convert(tmp_path / "a.bag")
    assert list(tmp_path.iterdir()) == []
    assert recording.convert(tmp_path / "a.npz") == 2
    assert Events.concatenate(open_recording(tmp_path / "a.npz").chunks()).t_ns.tolist() == t_ns
