"""Bags written message by message through rosbags' own typed serialisation: independent of the code under test."""

import numpy as np
import pytest

EVENT = "uint16 x\nuint16 y\n{time} ts\nbool polarity\n"
ARRAY = "std_msgs/Header header\nuint32 height\nuint32 width\n{package}/Event[] events\n"
PACKET = """std_msgs/Header header
uint32 height
uint32 width
uint64 seq
uint64 time_base
string encoding
bool is_bigendian
uint8[] events
"""


@pytest.fixture
def write_bag():
    """Write `{topic: (type, [messages])}` to a bag; a message is a dict, or `(stamp_ns, dict)`."""
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    def build(store, kind, value):
        """Build a message object of nested plain values."""
        if not isinstance(value, dict):
            return value
        from rosbags.interfaces import Nodetype

        fields = dict(store.fielddefs[kind][1])
        built = {}
        for name, (node, detail) in fields.items():
            item = value[name]
            if node == Nodetype.NAME:
                built[name] = build(store, detail, item)
            elif node == Nodetype.SEQUENCE and detail[0][0] == Nodetype.NAME:
                built[name] = [build(store, detail[0][1], element) for element in item]
            else:
                built[name] = item
        return store.types[kind](**built)

    def write(path, topics, *, ros=1, storage="sqlite3", compression=None, package="dvs_msgs"):
        store = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_HUMBLE)
        time = "time" if ros == 1 else "builtin_interfaces/Time"
        store.register(
            {
                **get_types_from_msg(EVENT.format(time=time), f"{package}/msg/Event"),
                **get_types_from_msg(ARRAY.format(package=package), f"{package}/msg/EventArray"),
                **get_types_from_msg(PACKET, "event_camera_msgs/msg/EventPacket"),
                **get_types_from_msg(PACKET, "event_array_msgs/msg/EventArray"),
            }
        )
        if ros == 1:
            writer = Writer1(path)
            if compression:
                writer.set_compression(Writer1.CompressionFormat[compression.upper()])
        else:
            writer = Writer2(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
        with writer:
            for topic, (kind, messages) in topics.items():
                connection = writer.add_connection(topic, kind, typestore=store)
                for number, message in enumerate(messages):
                    stamp_ns, fields = message if isinstance(message, tuple) else (number * 1_000_000, message)
                    built = build(store, kind, fields)
                    data = store.serialize_ros1(built, kind) if ros == 1 else store.serialize_cdr(built, kind)
                    writer.write(connection, stamp_ns, data)
        return path

    return write


def header(stamp_ns, ros, frame="cam"):
    stamp = {"sec": stamp_ns // 10**9, "nanosec": stamp_ns % 10**9}
    return {"seq": 7, "stamp": stamp, "frame_id": frame} if ros == 1 else {"stamp": stamp, "frame_id": frame}


@pytest.fixture
def event_message():
    """Build the plain values of an EventArray."""

    def make(events, *, ros=1, width=240, height=180, frame="cam"):
        return {
            "header": header(int(events.t_ns[-1]) if len(events) else 0, ros, frame),
            "height": height,
            "width": width,
            "events": [
                {"x": int(x), "y": int(y), "ts": {"sec": t // 10**9, "nanosec": t % 10**9}, "polarity": bool(p)}
                for t, x, y, p in zip(events.t_ns.tolist(), events.x, events.y, events.p, strict=True)
            ],
        }

    return make


@pytest.fixture
def packet_message():
    """Build the plain values of an EventPacket."""

    def make(encoding, data, *, ros=1, stamp_ns=0, time_base=0, frame="cam", width=1280, height=720):
        return {
            "header": header(stamp_ns, ros, frame),
            "height": height,
            "width": width,
            "seq": 5,
            "time_base": time_base,
            "encoding": encoding,
            "is_bigendian": False,
            "events": np.frombuffer(data, np.uint8),
        }

    return make


@pytest.fixture
def camera_info_message():
    def make(*, ros=1, width=240, height=180, fx=199.092, distortion=(-0.368436, 0.150947, -0.000296, -0.000759, 0.0)):
        K = np.array([fx, 0, 132.192, 0, 198.829 if fx else 0.0, 110.713, 0, 0, 1])
        names = ("D", "K", "R", "P") if ros == 1 else ("d", "k", "r", "p")
        values = (np.array(distortion), K, np.eye(3).reshape(-1), np.zeros(12))
        region = {"x_offset": 0, "y_offset": 0, "height": 0, "width": 0, "do_rectify": False}
        return {
            "header": header(0, ros),
            "height": height,
            "width": width,
            "distortion_model": "plumb_bob",
            **dict(zip(names, values, strict=True)),
            "binning_x": 0,
            "binning_y": 0,
            "roi": region,
        }

    return make


@pytest.fixture
def pose_message():
    def make(stamp_ns, quaternion_xyzw, position=(0.0, 0.0, 0.0), *, ros=1):
        return {
            "header": header(stamp_ns, ros),
            "pose": {
                "position": dict(zip("xyz", map(float, position), strict=True)),
                "orientation": dict(zip("xyzw", map(float, quaternion_xyzw), strict=True)),
            },
        }

    return make


@pytest.fixture
def imu_message():
    def make(stamp_ns, rate, force, *, ros=1):
        unknown = np.zeros(9)
        return {
            "header": header(stamp_ns, ros),
            "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            "orientation_covariance": unknown,
            "angular_velocity": dict(zip("xyz", map(float, rate), strict=True)),
            "angular_velocity_covariance": unknown,
            "linear_acceleration": dict(zip("xyz", map(float, force), strict=True)),
            "linear_acceleration_covariance": unknown,
        }

    return make
