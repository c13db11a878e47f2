"""The bytes of messages: ROS 1 and ROS 2 (CDR). Events are read and written without a step for each of them.

An `EventArray` has the same fields in both: `Header header; uint32 height; uint32 width; Event[] events`, and an
`Event` is `uint16 x; uint16 y; time ts; bool polarity`. ROS 1 packs them: 13 bytes an event. CDR aligns every number to
its own size, counted from the end of the four-byte encapsulation header: the events lie 16 bytes apart, but the first
one's `x` and `y` stand two bytes later than the others', because there the four-byte time needs no padding before it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.nanoseconds import NS_PER_S

# Packages that define the same EventArray.
EVENT_ARRAY_TYPES = tuple(
    f"{package}/msg/EventArray" for package in ("dvs_msgs", "dv_ros_msgs", "prophesee_event_msgs")
)

EVENT_DEFINITION = "uint16 x\nuint16 y\ntime ts\nbool polarity\n"
EVENT_ARRAY_DEFINITION = "std_msgs/Header header\nuint32 height\nuint32 width\n{package}/Event[] events\n"


class StampedType(NamedTuple):
    """A message of a header, texts, and float64 numbers: how many of these, and which of the numbers count."""

    texts: int
    numbers: int
    wanted: tuple[int, ...]


STAMPED = {
    "geometry_msgs/msg/PoseStamped": StampedType(0, 7, tuple(range(7))),  # position, orientation
    "geometry_msgs/msg/TransformStamped": StampedType(1, 7, tuple(range(7))),  # of a child frame
    # Orientation (4), angular velocity (3), linear acceleration (3), each with its covariance (9).
    "sensor_msgs/msg/Imu": StampedType(0, 37, (13, 14, 15, 25, 26, 27)),
}

ROS1_EVENT = np.dtype([("x", "<u2"), ("y", "<u2"), ("s", "<u4"), ("ns", "<u4"), ("p", "u1")])


def parse_ros1(data: bytes) -> tuple[SensorSize, Events]:
    """Return the sensor size and the events of a serialised ROS 1 `EventArray`, in the order of the message."""
    try:
        (name_length,) = struct.unpack_from("<I", data, 12)
        height, width, count = struct.unpack_from("<III", data, 16 + name_length)
    except struct.error:
        raise RecordingError(f"an event message of {len(data)} bytes is too short for its header") from None
    start = 28 + name_length
    if len(data) != start + 13 * count:
        raise RecordingError(
            f"an event message has {len(data)} bytes, but {count} events take {start + 13 * count}: "
            "the message is cut, or its type is not an EventArray of 13 bytes an event"
        )
    return SensorSize(width, height), from_ros1(np.frombuffer(data, ROS1_EVENT, count, start))


def from_ros1(records: np.ndarray) -> Events:
    """Return the events of packed records."""
    return _to_events(*(records[field] for field in ("x", "y", "s", "ns", "p")))


def parse_cdr(data: bytes) -> tuple[SensorSize, Events]:
    """Return the sensor size and the events of a CDR-serialised ROS 2 `EventArray`, in the order of the message."""
    if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1):
        raise RecordingError("an event message does not start with a plain CDR header")
    order = "<" if data[1] == 1 else ">"
    try:
        (name_length,) = struct.unpack_from(f"{order}I", data, 12)
        sizes_at = 16 + name_length + (-name_length) % 4
        height, width, count = struct.unpack_from(f"{order}III", data, sizes_at)
    except struct.error:
        raise RecordingError(f"an event message of {len(data)} bytes is too short for its header") from None
    start = sizes_at + 12
    end = start + (16 * count - 3 if count else 0)
    # Writers may pad the end of a message to a multiple of four bytes.
    if not end <= len(data) < end + 4:
        raise RecordingError(
            f"an event message has {len(data)} bytes, but {count} events take {end}: "
            "the message is cut, or its type is not a plain EventArray"
        )
    if count == 0:
        return SensorSize(width, height), Events.empty()
    x, y, seconds, nanoseconds, polarity = (
        np.ndarray(count, dtype, data, start + offset, 16)
        for dtype, offset in (
            (f"{order}u2", -2),
            (f"{order}u2", 0),
            (f"{order}i4", 4),
            (f"{order}u4", 8),
            ("u1", 12),
        )
    )
    x, y = x.astype(np.uint16), y.astype(np.uint16)
    x[0], y[0] = struct.unpack_from(f"{order}HH", data, start)
    return SensorSize(width, height), _to_events(x, y, seconds, nanoseconds, polarity)


def parse_stamped(data: bytes, kind: StampedType, *, is_ros1: bool) -> tuple[int, tuple[float, ...]]:
    """Return the stamp in nanoseconds and the numbers that count of a serialised message.

    ROS 1 has a number in front of the stamp; CDR has its own header there, and aligns lengths to 4 bytes and numbers
    to 8, counted from behind it.
    """
    try:
        order = "<" if is_ros1 or data[1] == 1 else ">"
        seconds, nanoseconds = struct.unpack_from(f"{order}{'I' if is_ros1 else 'i'}I", data, 4)
        place = 12
        for _ in range(1 + kind.texts):
            place += 0 if is_ros1 else -place % 4
            place += 4 + struct.unpack_from(f"{order}I", data, place)[0]
        place += 0 if is_ros1 else (4 - place) % 8
        numbers = struct.unpack_from(f"{order}{kind.numbers}d", data, place)
    except (struct.error, IndexError):
        raise RecordingError(f"{len(data)} bytes are too short for it") from None
    return seconds * NS_PER_S + nanoseconds, tuple(numbers[number] for number in kind.wanted)


def _to_events(
    x: np.ndarray, y: np.ndarray, seconds: np.ndarray, nanoseconds: np.ndarray, polarity: np.ndarray
) -> Events:
    """Make contiguous columns of strided fields."""
    if len(x) == 0:
        return Events.empty()
    t_ns = nanoseconds.astype(np.int64)
    first = int(seconds[0])
    if (seconds == first).all():
        t_ns += first * NS_PER_S
    else:
        t_ns += seconds.astype(np.int64) * NS_PER_S
    return Events(t_ns, x.astype(np.uint16), y.astype(np.uint16), (polarity != 0).view(np.uint8))


def serialize_ros1(events: Events, size: SensorSize, stamp_ns: int, sequence: int, frame_id: str = "") -> bytes:
    """Return the bytes of a ROS 1 `EventArray`."""
    name = frame_id.encode()
    header = struct.pack("<IIII", sequence, *divmod(stamp_ns, NS_PER_S), len(name)) + name
    header += struct.pack("<III", size.height, size.width, len(events))
    return header + to_ros1(events).tobytes()


def to_ros1(events: Events) -> np.ndarray:
    """Return events as packed records."""
    records = np.empty(len(events), ROS1_EVENT)
    records["x"], records["y"], records["p"] = events.x, events.y, events.p
    seconds = events.t_ns // NS_PER_S
    records["s"] = seconds
    records["ns"] = events.t_ns - seconds * NS_PER_S
    return records
