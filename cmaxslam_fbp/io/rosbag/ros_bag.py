"""ROS 1 and ROS 2 bags as topics and messages: the only module that knows the rosbags library."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from cmaxslam_fbp.io.bad_input import unpack
from cmaxslam_fbp.io.recording import starts_with
from cmaxslam_fbp.io.rosbag.ros1_bag import Ros1Bag

ROS1_MAGIC = b"#ROSBAG V"
_ALWAYS_READ = 1 << 20  # bytes; so small a length needs no look at the file


class Topic(NamedTuple):
    """A topic of a bag."""

    name: str
    message_type: str
    messages: int


class _BoundedFile(io.BufferedReader):
    """A file that refuses to read more than it has: rosbags takes lengths from the file, and memory for them."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does; a length beyond its end is an error."""
        if size is not None and size > _ALWAYS_READ and size > os.fstat(self.fileno()).st_size - self.tell():
            raise ValueError(f"a record claims {size:,} bytes, more than the file has")
        return super().read(size)


class _BoundedPath(type(Path())):  # type: ignore[misc]
    """A path that opens as a bounded file."""

    def open(self, mode: str = "r", *options: Any, **more: Any) -> IO[Any]:
        """Open the file; only bytes are bounded."""
        return _BoundedFile(io.FileIO(self)) if mode == "rb" else super().open(mode, *options, **more)


def _open_ros1(path: Path) -> Ros1Bag:
    file = _BoundedFile(io.FileIO(path))
    try:
        return Ros1Bag(file)
    except BaseException:
        file.close()
        raise


def _open_ros2(path: Path) -> Any:
    """Open a bag with the reader of rosbags, where decompression gets a limit: it unpacks whatever a chunk holds."""
    from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
    from rosbags.rosbag2 import Reader
    from rosbags.rosbag2 import storage_mcap as mcap

    mcap.DECOMPRESSORS |= {
        "lz4": lambda data, _: unpack(LZ4FrameDecompressor(), data),
        "zstd": lambda data, _: unpack(mcap.zstd.ZstdDecompressor(), data),  # type: ignore[attr-defined]
    }
    reader = Reader(_BoundedPath(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the YAML library, on the metadata of a ROS 2 bag
        reader.open()
    return reader


class RosBag:
    """An open bag of either kind; a context manager. `BagRecording` turns what rosbags raises into one line."""

    def __init__(self, path: Path) -> None:
        self.is_ros1 = starts_with(path, ROS1_MAGIC)
        if path.is_dir() and (pipes := [item.name for item in path.iterdir() if not (item.is_file() or item.is_dir())]):
            raise ValueError(f"{', '.join(pipes)} in it is a device or a pipe")
        self._reader: Any = _open_ros1(path) if self.is_ros1 else _open_ros2(path)
        self._typestore: Any = None

    def __enter__(self) -> RosBag:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    @property
    def topics(self) -> list[Topic]:
        """All topics, by name."""
        found: dict[str, Topic] = {}
        for connection in self._reader.connections:
            # The metadata of a ROS 2 bag is YAML, in which a name or a number may be anything.
            name, before = str(connection.topic), found.get(str(connection.topic))
            messages = int(connection.msgcount) + (before.messages if before else 0)
            found[name] = Topic(name, str(connection.msgtype), messages)
        return sorted(found.values())

    def messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """Yield the message stamp in nanoseconds and the serialised bytes of each message of a topic."""
        connections = [c for c in self._reader.connections if c.topic == topic]
        messages = self._reader.messages(connections)
        return messages if self.is_ros1 else ((stamp_ns, data) for _, stamp_ns, data in messages)

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """Return the message object of a standard type, with the field names of its ROS version."""
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

        from cmaxslam_fbp.io.rosbag.ros_messages import EVENT_ARRAY_DEFINITION, EVENT_DEFINITION

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
