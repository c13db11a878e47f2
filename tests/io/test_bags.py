import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmaxslam_fbp.errors import CalibrationError, RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.rosbag.ros_messages import parse_cdr, parse_ros1, serialize_ros1

ARRAY = "dvs_msgs/msg/EventArray"
KINDS = [
    pytest.param({"ros": 1}, id="ros1"),
    pytest.param({"ros": 1, "compression": "bz2"}, id="ros1-bz2"),
    pytest.param({"ros": 1, "compression": "lz4"}, id="ros1-lz4"),
    pytest.param({"ros": 2, "storage": "sqlite3"}, id="ros2-sqlite3"),
    pytest.param({"ros": 2, "storage": "mcap"}, id="ros2-mcap"),
]


def all_events(recording, *arguments):
    return Events.concatenate(recording.chunks(*arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_bag_gives_the_events_that_were_written(
    tmp_path, kind, write_bag, make_events, event_message, assert_same_events
):
    events = make_events(3000)
    messages = [event_message(events[i : i + 700], ros=kind["ros"]) for i in range(0, 3000, 700)]
    path = write_bag(tmp_path / ("a.bag" if kind["ros"] == 1 else "a"), {"/dvs/events": (ARRAY, messages)}, **kind)
    recording = open_recording(path)
    assert recording.sensor_size == (240, 180)
    assert_same_events(all_events(recording), events)


@pytest.mark.parametrize("package", ["dvs_msgs", "dv_ros_msgs", "prophesee_event_msgs"])
@pytest.mark.parametrize("ros", [1, 2])
def test_event_arrays_of_other_packages_are_recognised(
    tmp_path, package, ros, write_bag, make_events, event_message, assert_same_events
):
    events = make_events(50)
    kind = f"{package}/msg/EventArray"
    topics = {"/cam/e": (kind, [event_message(events, ros=ros)])}
    path = write_bag(tmp_path / "a.bag", topics, ros=ros, package=package)
    assert_same_events(all_events(open_recording(path)), events)


@pytest.mark.parametrize("frame", ["", "c", "ca", "cam", "came"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_cdr_alignment_holds_for_every_length_of_the_frame_name(
    tmp_path, frame, count, write_bag, make_events, event_message, assert_same_events
):
    events = make_events(count) if count else Events.empty()
    tail = make_events(5, seed=1, start_ns=1_468_941_033_000_000_000)
    messages = [event_message(events, ros=2, frame=frame), event_message(tail, ros=2, frame=frame)]
    path = write_bag(tmp_path / "a", {"/dvs/events": (ARRAY, messages)}, ros=2)
    assert_same_events(all_events(open_recording(path)), Events.concatenate([events, tail]))


def test_big_endian_cdr_is_read(make_events, assert_same_events):
    import struct

    events = make_events(3)
    body = struct.pack(">iI", 5, 6) + struct.pack(">I", 4) + b"cam\0" + struct.pack(">III", 180, 240, 3)
    for t, x, y, p in zip(events.t_ns.tolist(), events.x, events.y, events.p, strict=True):
        body += b"\0" * (-len(body) % 2) + struct.pack(">HH", x, y)
        body += b"\0" * (-len(body) % 4) + struct.pack(">iIB", t // 10**9, t % 10**9, p)
    size, parsed = parse_cdr(b"\0\0\0\0" + body)
    assert size == (240, 180)
    assert_same_events(parsed, events)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 * 10**9 - 1), st.integers(0, 65535), st.integers(0, 65535), st.booleans()),
        max_size=20,
    ),
    st.text("abc/_", max_size=6),
)
def test_ros1_bytes_round_trip(rows, frame):
    events = Events(
        *(
            np.array(column, kind)
            for column, kind in zip(
                zip(*rows, strict=True) if rows else ([], [], [], []),
                (np.int64, np.uint16, np.uint16, np.uint8),
                strict=True,
            )
        )
    )
    size, parsed = parse_ros1(serialize_ros1(events, SensorSize(640, 480), 12_345_678_901, 3, frame))
    assert size == (640, 480)
    for name in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(parsed, name), getattr(events, name))


@pytest.mark.parametrize("parse", [parse_ros1, parse_cdr])
def test_a_cut_message_is_an_error(parse, make_events):
    data = serialize_ros1(make_events(10), SensorSize(240, 180), 0, 0)
    if parse is parse_cdr:
        data = b"\0\1\0\0" + data[4:]
    for length in (0, 3, 11, 20, len(data) - 1):
        with pytest.raises(RecordingError, match="event message"):
            parse(data[:length])


def test_event_stamps_count_not_message_stamps(tmp_path, write_bag, make_events, event_message, assert_same_events):
    events = make_events(100)
    messages = [(10**9 * (5 + i), event_message(events[10 * i : 10 * i + 10])) for i in range(10)]
    path = write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, messages)})
    assert_same_events(all_events(open_recording(path)), events)


def test_the_time_range_is_half_open_and_counts_from_the_first_event(
    tmp_path, write_bag, event_message, assert_same_events
):
    t_ns = 1_468_941_032_000_000_123 + np.arange(0, 5_000_000_000, 1_000_000)
    ones = np.ones(len(t_ns), np.uint16)
    events = Events(t_ns, ones, ones, ones.astype(np.uint8))
    messages = [event_message(events[i : i + 100]) for i in range(0, 5000, 100)]
    recording = open_recording(write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, messages)}))
    assert_same_events(all_events(recording, 1.0, 0.5), events[1000:1500])
    assert_same_events(all_events(recording, 3.25), events[3250:])
    assert_same_events(all_events(recording, None, 0.001), events[:1])
    assert_same_events(all_events(recording, 0, 10), events)
    with pytest.raises(RecordingError, match=r"between 5 s and 6 s .* the last one comes at 4\.999000 s"):
        all_events(recording, 5.0, 1.0)
    with pytest.raises(RecordingError, match="0 s or later"):
        recording.chunks(-1.0)
    with pytest.raises(RecordingError, match="must be positive"):
        recording.chunks(0.0, 0.0)


def test_disorder_within_and_between_messages_is_sorted_and_counted(
    tmp_path, write_bag, make_events, event_message, assert_same_events
):
    events = make_events(400, duration_ns=900_000_000)
    assert len(np.unique(events.t_ns)) == 400
    shuffled = np.arange(400)
    shuffled[10:14] = [13, 10, 12, 11]  # within the first message: 3 behind a later one
    shuffled[95:105] = [100, 101, 102, 103, 104, 95, 96, 97, 98, 99]  # over a message's border: 5
    shuffled[300:302] = [301, 300]  # 1
    messages = [event_message(events[shuffled[i : i + 100]]) for i in range(0, 400, 100)]
    stream = open_recording(write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, messages)})).chunks()
    assert_same_events(Events.concatenate(stream), events)
    assert stream.defects.reordered == 9
    assert stream.defects.describe() == ["9 events came out of order and were sorted by their stamps"]


def test_messages_swapped_by_less_than_a_second_are_sorted(
    tmp_path, write_bag, make_events, event_message, assert_same_events, monkeypatch
):
    monkeypatch.setattr("cmaxslam_fbp.io.rosbag.bag_recording._EVENTS_PER_CHUNK", 1)
    events = make_events(1000, duration_ns=4_000_000_000)
    pieces = [events[i : i + 100] for i in range(0, 1000, 100)]
    pieces[3], pieces[4] = pieces[4], pieces[3]
    messages = [event_message(piece) for piece in pieces]
    stream = open_recording(write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, messages)})).chunks()
    assert_same_events(Events.concatenate(stream), events)
    assert stream.defects.reordered == 100


def test_a_jump_back_of_more_than_a_second_names_the_place(
    tmp_path, write_bag, make_events, event_message, monkeypatch
):
    monkeypatch.setattr("cmaxslam_fbp.io.rosbag.bag_recording._EVENTS_PER_CHUNK", 1)
    late, early = make_events(50, start_ns=9_000_000_000), make_events(50, start_ns=7_000_000_000)
    path = write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, [event_message(late), event_message(early)])})
    with pytest.raises(RecordingError, match=r"time jumps back by [12]\.\d+ s at event 0 of message 1 on /dvs/events"):
        all_events(open_recording(path))


def test_events_outside_the_sensor_are_dropped_and_counted(
    tmp_path, write_bag, make_events, event_message, assert_same_events
):
    events = make_events(500, width=250, height=185)
    inside = (events.x < 240) & (events.y < 180)
    assert 0 < inside.sum() < 500
    stream = open_recording(write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, [event_message(events)])})).chunks()
    assert_same_events(Events.concatenate(stream), events[inside])
    assert stream.defects.outside_sensor == 500 - inside.sum()


def test_calibration_poses_and_imu_come_from_their_topics(
    tmp_path, write_bag, make_events, event_message, camera_info_message, pose_message, imu_message
):
    events = make_events(100)
    half = np.sqrt(0.5)
    stamps = [1_468_941_032_000_000_001, 1_468_941_032_005_000_002]
    for ros in (1, 2):
        topics = {
            "/dvs/events": (ARRAY, [event_message(events, ros=ros)]),
            "/dvs/camera_info": ("sensor_msgs/msg/CameraInfo", [camera_info_message(ros=ros)]),
            "/optitrack/davis": (
                "geometry_msgs/msg/PoseStamped",
                [
                    pose_message(stamps[0], (0, 0, 0, 1), (1, 2, 3), ros=ros),
                    pose_message(stamps[1], (half, 0, 0, half), (4, 5, 6), ros=ros),
                ],
            ),
            "/dvs/imu": ("sensor_msgs/msg/Imu", [imu_message(stamps[0], (1, 2, 3), (4, 5, 6), ros=ros)]),
        }
        recording = open_recording(write_bag(tmp_path / f"a{ros}.bag", topics, ros=ros))
        camera = recording.require_camera()
        assert (camera.width, camera.height, camera.fx, camera.fy) == (240, 180, 199.092, 198.829)
        assert (camera.cx, camera.cy, camera.distortion[:2]) == (132.192, 110.713, (-0.368436, 0.150947))
        assert recording.ground_truth.t_ns.tolist() == stamps
        np.testing.assert_allclose(recording.ground_truth.quaternions_xyzw[1], (half, 0, 0, half), atol=1e-15)
        np.testing.assert_array_equal(recording.ground_truth.positions_m, [[1, 2, 3], [4, 5, 6]])
        np.testing.assert_array_equal(recording.gyroscope.omega_rad_s, [[1, 2, 3]])
        np.testing.assert_array_equal(recording.imu.linear_acceleration_m_s2, [[4, 5, 6]])


def test_an_uncalibrated_bag_says_what_to_do(tmp_path, write_bag, make_events, event_message, camera_info_message):
    topics = {
        "/dvs/events": (ARRAY, [event_message(make_events(10))]),
        "/dvs/camera_info": ("sensor_msgs/msg/CameraInfo", [camera_info_message(fx=0.0)]),
    }
    recording = open_recording(write_bag(tmp_path / "a.bag", topics))
    assert recording.camera is None
    with pytest.raises(CalibrationError, match="has no calibration: give one with --calib"):
        recording.require_camera()


def test_the_synthetic_layout_of_ecrot_has_everything_on_one_camera(
    tmp_path, write_bag, make_events, event_message, camera_info_message, pose_message
):
    info = {**camera_info_message(distortion=()), "distortion_model": ""}
    topics = {
        "/cam0/events": ("dvs_msgs/msg/EventArray", [event_message(make_events(30))]),
        "/cam0/camera_info": ("sensor_msgs/msg/CameraInfo", [info]),
        "/cam0/pose": ("geometry_msgs/msg/PoseStamped", [pose_message(t, (0, 0, 0, 1)) for t in (1, 2, 3)]),
    }
    recording = open_recording(write_bag(tmp_path / "a.bag", topics))
    assert recording.camera == Camera(240, 180, 199.092, 198.829, 132.192, 110.713)
    assert len(recording.ground_truth) == 3
    assert len(Events.concatenate(recording.chunks())) == 30


def test_the_other_layout_of_ecrot_needs_a_calibration_and_says_so(
    tmp_path, write_bag, make_events, event_message, run
):
    message = event_message(make_events(30, width=128, height=128), width=128, height=128)
    path = write_bag(tmp_path / "a.bag", {"/dvs/events": ("dvs_msgs/msg/EventArray", [message])})
    assert "a.bag has no calibration: give one with --calib" in run("run", path, code=1).stderr
    (tmp_path / "calib.txt").write_text("91.4 91.4 64 64")
    recording = open_recording(path, calibration=tmp_path / "calib.txt")
    assert recording.require_camera() == Camera(128, 128, 91.4, 91.4, 64, 64)


def test_several_event_topics_are_listed_and_one_is_chosen(
    tmp_path, write_bag, make_events, event_message, assert_same_events
):
    left, right = make_events(10, seed=1), make_events(10, seed=2)
    topics = {"/left/events": (ARRAY, [event_message(left)]), "/right/events": (ARRAY, [event_message(right)])}
    path = write_bag(tmp_path / "a.bag", topics)
    with pytest.raises(RecordingError, match="--events-topic: /left/events, /right/events"):
        open_recording(path)
    with pytest.raises(RecordingError, match=r"no event topic /middle; .* /left/events, /right/events"):
        open_recording(path, events_topic="/middle")
    assert_same_events(all_events(open_recording(path, events_topic="/right/events")), right)


def test_a_bag_without_events_lists_its_topics(tmp_path, write_bag, pose_message):
    topics = {"/pose": ("geometry_msgs/msg/PoseStamped", [pose_message(0, (0, 0, 0, 1))])}
    path = write_bag(tmp_path / "a.bag", topics)
    with pytest.raises(RecordingError, match=r"no event topic .*/pose \(geometry_msgs/msg/PoseStamped\)"):
        open_recording(path)


def test_zero_events_are_an_error(tmp_path, write_bag, event_message):
    path = write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, [event_message(Events.empty())])})
    with pytest.raises(RecordingError, match="has no events"):
        all_events(open_recording(path))


def test_a_missing_sensor_size_is_asked_for_and_taken(
    tmp_path, write_bag, make_events, event_message, camera_info_message
):
    message = event_message(make_events(10), width=0, height=0)
    bare = write_bag(tmp_path / "a.bag", {"/dvs/events": (ARRAY, [message])})
    with pytest.raises(RecordingError, match="--sensor-size WIDTHxHEIGHT"):
        all_events(open_recording(bare))
    assert open_recording(bare, sensor_size=(640, 480)).sensor_size == (640, 480)
    topics = {
        "/dvs/events": (ARRAY, [message]),
        "/dvs/camera_info": ("sensor_msgs/msg/CameraInfo", [camera_info_message()]),
    }
    assert open_recording(write_bag(tmp_path / "b.bag", topics)).sensor_size == (240, 180)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_a_truncated_or_damaged_bag_is_one_line(tmp_path_factory, place):
    """Cut a good bag at every kind of place: never a traceback of another library, never a silent short read."""
    path, size = _good_bag(tmp_path_factory)
    cut = path.with_name(f"cut{place}.bag")
    cut.write_bytes(path.read_bytes()[: place * (size - 1) // 10_000])
    try:
        with pytest.raises(RecordingError) as caught:
            all_events(open_recording(cut))
    finally:
        cut.unlink()
    assert "\n" not in str(caught.value)
    assert str(cut) in str(caught.value)


_BAG = {}


def _good_bag(tmp_path_factory):
    if not _BAG:
        from cmaxslam_fbp.io.rosbag.ros_bag import Ros1BagWriter

        path = tmp_path_factory.mktemp("bag") / "good.bag"
        t_ns = np.arange(2000, dtype=np.int64) * 1000
        zeros = np.zeros(2000, np.uint16)
        data = serialize_ros1(Events(t_ns, zeros, zeros, zeros.astype(np.uint8)), SensorSize(240, 180), 0, 0)
        with Ros1BagWriter(path) as writer:
            for i in range(3):
                writer.write("/dvs/events", ARRAY, i, data)
        _BAG["path"] = path, path.stat().st_size
    return _BAG["path"]


@pytest.mark.parametrize("name", ["a.bag", "a.db3", "a.mcap", "a.txt", "a.npz", "a.zip"])
def test_files_that_are_no_recordings_are_one_line(tmp_path, name):
    for content in (b"", b"hello, this is not a recording\n" * 10):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(RecordingError) as caught:
            open_recording(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_missing_paths_and_strange_folders_say_what_is_expected(tmp_path):
    with pytest.raises(RecordingError, match=r"does not exist; .* lists what is read"):
        open_recording(tmp_path / "nothing.bag")
    with pytest.raises(RecordingError, match=r"has none of metadata\.yaml, events\.txt"):
        open_recording(tmp_path)
