"""ROS 1 and ROS 2 bags as topics and messages: the only module that knows the rosbags library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cmaxslam_fbp.errors import CmaxSlamError, RecordingError

if TYPE_CHECKING:
    from cmaxslam_fbp.events import Events, SensorSize

ROS1_MAGIC = b"#ROSBAG V"


class Topic(NamedTuple):
    """A topic of a bag."""

    name: str
    message_type: str
    messages: int


def is_ros1_bag(path: Path) -> bool:
    """Tell whether a file starts as a ROS 1 bag does, whatever its name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ROS1_MAGIC)) == ROS1_MAGIC


class RosBag:
    """An open bag of either kind; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._one_line_errors():
            self.is_ros1 = is_ros1_bag(path)
            reader: Any
            if self.is_ros1:
                from rosbags.rosbag1 import Reader as Ros1Reader

                reader = Ros1Reader(path)
            else:
                from rosbags.rosbag2 import Reader as Ros2Reader

                reader = Ros2Reader(path)
            reader.open()
        self._reader = reader
        self._typestore: Any = None

    def __enter__(self) -> RosBag:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """Turn whatever a damaged file makes the libraries raise into one line."""
        try:
            yield
        except (CmaxSlamError, MemoryError):
            raise
        # rosbags, bz2, lz4, sqlite and struct raise many types of error on damaged bytes, asserts among them.
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise RecordingError(
                f"{self.path} cannot be read as a ROS bag: {reason.rstrip('.')}; "
                "the file may be cut or damaged ('rosbag reindex' mends a ROS 1 bag without an index)"
            ) from error

    @property
    def topics(self) -> list[Topic]:
        """All topics, by name."""
        with self._one_line_errors():
            found: dict[str, Topic] = {}
            for connection in self._reader.connections:
                before = found.get(connection.topic)
                found[connection.topic] = Topic(
                    connection.topic,
                    connection.msgtype,
                    connection.msgcount + (before.messages if before else 0),
                )
            return sorted(found.values())

    def messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """Yield the message stamp in nanoseconds and the serialised bytes of each message of a topic."""
        with self._one_line_errors():
            connections = [c for c in self._reader.connections if c.topic == topic]
            stream = self._reader.messages(connections=connections)
        while True:
            with self._one_line_errors():
                item = next(stream, None)
            if item is None:
                return
            yield item[1], item[2]

    def parse_events(self, data: bytes) -> tuple[SensorSize, Events]:
        """Return the sensor size and the events of a serialised `EventArray`."""
        from cmaxslam_fbp.io.ros_messages import parse_cdr, parse_ros1

        return parse_ros1(data) if self.is_ros1 else parse_cdr(data)

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """Return the message object of a standard type, with the field names of its ROS version."""
        with self._one_line_errors():
            if self._typestore is None:
                from rosbags.typesys import Stores, get_typestore

                self._typestore = get_typestore(Stores.ROS1_NOETIC if self.is_ros1 else Stores.ROS2_HUMBLE)
            if self.is_ros1:
                return self._typestore.deserialize_ros1(data, message_type)
            return self._typestore.deserialize_cdr(data, message_type)


class Ros1BagWriter:
    """A new ROS 1 bag; a context manager. Messages are given as serialised bytes or as message objects."""

    def __init__(self, path: Path, compression: str = "none") -> None:
        from rosbags.rosbag1 import Writer
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        from cmaxslam_fbp.io.ros_messages import EVENT_ARRAY_DEFINITION, EVENT_DEFINITION

        self._typestore = get_typestore(Stores.ROS1_NOETIC)
        self._typestore.register(
            {
                **get_types_from_msg(EVENT_DEFINITION, "dvs_msgs/msg/Event"),
                **get_types_from_msg(EVENT_ARRAY_DEFINITION.format(package="dvs_msgs"), "dvs_msgs/msg/EventArray"),
            }
        )
        self._writer = Writer(path)
        if compression != "none":
            self._writer.set_compression(Writer.CompressionFormat[compression.upper()])
        self._writer.open()
        self._connections: dict[str, Any] = {}

    def __enter__(self) -> Ros1BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def type(self, message_type: str) -> Any:
        """Return the message class of a type, e.g. `sensor_msgs/msg/Imu`."""
        return self._typestore.types[message_type]

    def write(self, topic: str, message_type: str, stamp_ns: int, message: Any) -> None:
        """Append a message, serialised (bytes) or not."""
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(topic, message_type, typestore=self._typestore)
        if not isinstance(message, bytes):
            message = self._typestore.serialize_ros1(message, message_type)
        self._writer.write(self._connections[topic], stamp_ns, message)
