"""Our reader of ROS 1 bags and of stamped messages against rosbags, which has written them."""

import io
import tracemalloc

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.rosbag.ros1_bag import Ros1Bag
from cmaxslam_fbp.io.rosbag.ros_messages import STAMPED, parse_stamped

STRINGS = "std_msgs/msg/String"


@pytest.mark.parametrize("compression", [None, "bz2", "lz4"])
def test_messages_of_any_topics_come_in_the_order_of_their_stamps(tmp_path, compression):
    from rosbags.rosbag1 import Reader, Writer
    from rosbags.typesys import Stores, get_typestore

    store, draw = get_typestore(Stores.ROS1_NOETIC), np.random.default_rng(0)
    writer = Writer(tmp_path / "a.bag")
    writer.chunk_threshold = 2000
    if compression:
        writer.set_compression(Writer.CompressionFormat[compression.upper()])
    with writer:
        connections = [
            writer.add_connection(topic, STRINGS, typestore=store, callerid=caller)
            for topic, caller in (("/a", "/one"), ("//b/", "/one"), ("/b", "/two"))
        ]
        for number, t_ns in enumerate(draw.integers(0, 5 * 10**9, 400).tolist()):
            message = store.types[STRINGS](f"number {number}" * draw.integers(0, 20))
            writer.write(connections[draw.integers(3)], t_ns, store.serialize_ros1(message, STRINGS))

    with Reader(tmp_path / "a.bag") as theirs:
        bag = Ros1Bag((tmp_path / "a.bag").open("rb"))
        assert len(bag._chunks) > 5
        described = [(c.id, c.topic, c.msgtype, c.msgcount) for c in bag.connections]
        assert described == [(c.id, c.topic, c.msgtype, c.msgcount) for c in theirs.connections]
        for chosen in ([0], [1], [1, 2], [0, 1, 2]):
            wanted = [theirs.connections[number] for number in chosen]
            expected = [(t_ns, data) for _, t_ns, data in theirs.messages(connections=wanted)]
            assert list(bag.messages([bag.connections[number] for number in chosen])) == expected
        bag.close()


@pytest.mark.parametrize("frame", ["", "c", "ca", "cam", "came"])
@pytest.mark.parametrize("ros", [1, 2])
@pytest.mark.parametrize("kind", STAMPED)
def test_stamps_and_numbers_are_those_of_rosbags(kind, ros, frame):
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_HUMBLE)
    draw = np.random.default_rng(len(frame))

    def made(name, *values, **more):
        return store.types[f"{name[0]}_msgs/msg/{name[1]}"](*values, **more)

    def vector(name):
        return made(("geometry", name), *draw.normal(size=4 if name == "Quaternion" else 3))

    stamp = store.types["builtin_interfaces/msg/Time"](1_468_941_032, 229_417_001)
    header = made(("std", "Header"), stamp=stamp, frame_id=frame, **({"seq": 7} if ros == 1 else {}))
    if kind.endswith("Imu"):
        parts = [vector("Quaternion"), draw.normal(size=9), vector("Vector3"), draw.normal(size=9), vector("Vector3")]
        message = store.types[kind](header, *parts, draw.normal(size=9))
        fields = (message.angular_velocity, message.linear_acceleration)
    elif kind.endswith("PoseStamped"):
        message = store.types[kind](header, made(("geometry", "Pose"), vector("Point"), vector("Quaternion")))
        fields = (message.pose.position, message.pose.orientation)
    else:
        turn = made(("geometry", "Transform"), vector("Vector3"), vector("Quaternion"))
        message = store.types[kind](header, f"{frame}child", turn)
        fields = (message.transform.translation, message.transform.rotation)
    expected = [getattr(field, axis) for field in fields for axis in "xyzw" if hasattr(field, axis)]
    if ros == 1:
        data = bytes(store.serialize_ros1(message, kind))
        endings = [data]
    else:
        endings = [bytes(store.serialize_cdr(message, kind, little_endian=little)) for little in (True, False)]
    for data in endings:
        t_ns, numbers = parse_stamped(data, STAMPED[kind], is_ros1=ros == 1)
        assert t_ns == 1_468_941_032_229_417_001
        assert list(numbers) == expected
        for length in (0, 1, 9, 14, len(data) // 2):
            with pytest.raises(RecordingError, match="too short"):
                parse_stamped(data[:length], STAMPED[kind], is_ros1=ros == 1)


def test_an_imu_takes_a_few_times_its_numbers_of_memory(tmp_path, write_bag, make_events, event_message, imu_message):
    count = 12_000
    topics = {
        "/dvs/events": ("dvs_msgs/msg/EventArray", [event_message(make_events(10))]),
        "/dvs/imu": (
            "sensor_msgs/msg/Imu",
            [(n * 10**6, imu_message(n * 10**6, (n, 2, 3), (4, 5, 6))) for n in range(count)],
        ),
    }
    recording = open_recording(write_bag(tmp_path / "a.bag", topics))
    recording.topics()
    tracemalloc.start()
    try:
        samples = recording.imu
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(samples.angular_velocity_rad_s[:, 0], np.arange(count))
    assert peak < 2_400_000 + 150 * count  # two chunks of a megabyte; the seven numbers are 56 bytes


def test_of_large_chunks_only_the_messages_of_a_topic_are_read(tmp_path):
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    class Counted(io.BufferedReader):
        """A file that counts the bytes that are asked of it."""

        asked = 0

        def read(self, size=-1, /):
            self.asked += size
            return super().read(size)

    store, (large, small) = get_typestore(Stores.ROS1_NOETIC), ("x" * 1_000_000, "y" * 10)
    with Writer(tmp_path / "a.bag") as writer:
        both = [writer.add_connection(topic, STRINGS, typestore=store) for topic in ("/large", "/small")]
        for number in range(20):
            for connection, text in zip(both, (large, small), strict=True):
                data = store.serialize_ros1(store.types[STRINGS](text), STRINGS)
                writer.write(connection, number * 10**7, data)
    file = Counted(io.FileIO(tmp_path / "a.bag"))
    bag = Ros1Bag(file)
    messages = list(bag.messages([one for one in bag.connections if one.topic == "/small"]))
    assert [t_ns for t_ns, _ in messages] == [number * 10**7 for number in range(20)]
    assert all(data[4:] == b"y" * 10 for _, data in messages)
    assert file.asked < 100_000
    bag.close()
