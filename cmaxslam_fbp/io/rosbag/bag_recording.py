"""A recording in a ROS bag."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.lens_names import distortion_model
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.rosbag.bag_sink import write_bag
from cmaxslam_fbp.io.rosbag.event_packets import EVENT_PACKET_TYPES, TRIGGER, EventPacket, PacketDecoder, parse_packet
from cmaxslam_fbp.io.rosbag.ros_bag import ROS1_MAGIC, RosBag, Topic
from cmaxslam_fbp.io.rosbag.ros_messages import EVENT_ARRAY_TYPES, STAMPED, parse_cdr, parse_ros1, parse_stamped
from cmaxslam_fbp.io.writing import Sink
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

CAMERA_INFO = "sensor_msgs/msg/CameraInfo"


class TopicKind(NamedTuple):
    """What a topic is of, its types, and how the user names one: a setting of the section `recording`, and its flag."""

    what: str
    types: tuple[str, ...]
    option: str
    flag: str


EVENTS = TopicKind(
    "event",
    (EVENT_ARRAY_TYPES[0], EVENT_PACKET_TYPES[0], *EVENT_ARRAY_TYPES[1:], *EVENT_PACKET_TYPES[1:]),
    "events_topic",
    "--events-topic",
)
POSES = TopicKind(
    "pose",
    ("geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/TransformStamped"),
    "poses_topic",
    "--poses-topic",
)
IMU = TopicKind("IMU", ("sensor_msgs/msg/Imu",), "imu_topic", "--set recording.imu_topic=...")

_EVENTS_PER_CHUNK = 100_000  # small messages are joined up to this many events


class BagRecording(Recording):
    """A ROS 1 or ROS 2 bag with a topic of `EventArray` or `EventPacket` messages."""

    description = "a ROS 1 bag, a ROS 2 bag (its folder, .db3 or .mcap)"
    endings = (".db3", ".mcap")
    first_bytes = ROS1_MAGIC
    folder_file = "metadata.yaml"
    sinks: ClassVar[Mapping[str, Sink]] = {".bag": write_bag}  # of ROS 1
    damage_advice = "the bag may be cut or damaged ('rosbag reindex' mends a ROS 1 bag without an index)"

    def _examine(self) -> None:
        with RosBag(self.path) as bag:
            self._topics = bag.topics
            candidates = self._without_triggers(bag)
        events = self._choose(EVENTS, candidates)
        self.events_topic, self._has_packets = events.name, events.message_type in EVENT_PACKET_TYPES
        # Topics that the user names are errors now; that there are several is only told when the reference is read.
        for kind in (POSES, IMU):
            if getattr(self.options, kind.option) is not None:
                self._choose(kind, self._topics)

    def _without_triggers(self, bag: RosBag) -> list[Topic]:
        """Return the topics of the bag but those whose event packets have only triggers."""
        packets = [topic for topic in self._topics if topic.message_type in EVENT_PACKET_TYPES]
        triggers = set()
        for topic in packets if len(packets) > 1 else []:
            first = next(iter(bag.messages(topic.name)), None)
            if first is not None and parse_packet(first[1], bag.is_ros1).encoding == TRIGGER:
                triggers.add(topic.name)
        return [topic for topic in self._topics if topic.name not in triggers]

    def _choose(self, kind: TopicKind, topics: list[Topic]) -> Topic:
        """Return the topic of a kind: the one that the user wants, or the only one."""
        what, wanted = kind.what, getattr(self.options, kind.option)
        candidates = {topic.name: topic for topic in topics if topic.message_type in kind.types}
        if wanted in candidates:
            return candidates[wanted]
        if wanted is not None:
            there = f"its {what} topics are {', '.join(candidates)}" if candidates else f"it has no {what} topic"
            raise RecordingError(f"{self.path} has no {what} topic {wanted}; {there}")
        if len(candidates) == 1:
            return next(iter(candidates.values()))
        if candidates:
            raise RecordingError(
                f"{self.path} has several {what} topics; choose one with {kind.flag}: {', '.join(candidates)}"
            )
        types = " or ".join(kind.types[:2])
        listed = ", ".join(f"{topic.name} ({topic.message_type})" for topic in self._topics) or "none"
        raise RecordingError(f"{self.path} has no {what} topic (a message of type {types}); its topics are: {listed}")

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name, type and number of messages of each topic."""
        return [(topic.name, topic.message_type, topic.messages) for topic in self._topics]

    def _own_sensor_size(self) -> SensorSize | None:
        """Return the size of the event messages, else that of camera_info."""
        with RosBag(self.path) as bag:
            parse = parse_ros1 if bag.is_ros1 else parse_cdr
            for _, data in bag.messages(self.events_topic):
                size = self._parse_packet(bag, data, 0).size if self._has_packets else parse(data)[0]
                if min(size) > 0:
                    return size
                break
        info = self._camera_info()
        if info is not None and min(info.width, info.height) > 0:
            return SensorSize(info.width, info.height)
        return None

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        return self._packet_pieces() if self._has_packets else self._array_pieces(skip_before_ns)

    def _parse_packet(self, bag: RosBag, data: bytes, number: int) -> EventPacket:
        try:
            return parse_packet(data, bag.is_ros1)
        except RecordingError as error:
            raise RecordingError(f"{self._place(number, number)}: {error}") from None

    def _packet_pieces(self) -> Iterator[Piece]:
        """Yield the events of encoded packets; all are decoded, since each goes on where the one before ended."""
        decoder = PacketDecoder()
        first = number = 0
        with RosBag(self.path) as bag:
            for number, (_, data) in enumerate(bag.messages(self.events_topic)):
                packet = self._parse_packet(bag, data, number)
                try:
                    for events in decoder.decode(packet):
                        yield Piece(events, self._place(first, number))
                        first = number
                except RecordingError as error:
                    raise RecordingError(f"{self._place(number, number)}: {error}") from None
        yield Piece(decoder.rest(), self._place(first, number))

    def _array_pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with RosBag(self.path) as bag:
            parse = parse_ros1 if bag.is_ros1 else parse_cdr
            joined: list[Events] = []
            count = first = 0
            for number, (_, data) in enumerate(bag.messages(self.events_topic)):
                try:
                    _, events = parse(data)
                except RecordingError as error:
                    raise RecordingError(f"{self._place(number, number)}: {error}") from None
                if not len(events):
                    continue
                if skip_before_ns is not None and max(events.t_ns[0], events.t_ns[-1]) < skip_before_ns:
                    continue
                if not joined:
                    first = number
                joined.append(events)
                count += len(events)
                if count >= _EVENTS_PER_CHUNK:
                    yield Piece(Events.concatenate(joined), self._place(first, number))
                    joined, count = [], 0
            if joined:
                yield Piece(Events.concatenate(joined), self._place(first, number))

    def _place(self, first: int, last: int) -> str:
        messages = f"message {first}" if first == last else f"messages {first} to {last}"
        return f"{messages} on {self.events_topic} of {self.path}"

    def _camera_info(self) -> Any | None:
        """Return the first camera_info message; of several topics that beside the events' topic."""
        topics = [topic for topic in self._topics if topic.message_type == CAMERA_INFO and topic.messages]
        if not topics:
            return None
        namespace = self.events_topic.rsplit("/", 1)[0]
        topics.sort(key=lambda topic: not topic.name.startswith(namespace + "/"))
        with RosBag(self.path) as bag:
            for _, data in bag.messages(topics[0].name):
                return bag.deserialize(data, CAMERA_INFO)
        return None

    def _own_calibration(self) -> Camera | None:
        info = self._camera_info()
        if info is None:
            return None
        # ROS 1 writes these fields in capitals.
        K = np.array(info.K if hasattr(info, "K") else info.k, float).reshape(3, 3)
        if K[0, 0] == 0:  # ROS's sign of an uncalibrated camera
            return None
        size = SensorSize(info.width, info.height) if info.width and info.height else self.calibrated_size
        distortion = tuple(float(c) for c in (info.D if hasattr(info, "D") else info.d))
        model = distortion_model(info.distortion_model, distortion)
        return Camera(*size, K[0, 0], K[1, 1], K[0, 2], K[1, 2], distortion, model)

    def _poses(self) -> RotationTrajectory | None:
        stamps, table = self._stamped(POSES)
        if len(stamps) < 2:
            return None
        # Poses are compared by their own stamps: of equal ones the first counts.
        t_ns, first = np.unique(stamps, return_index=True)
        return RotationTrajectory(t_ns, table[first, 3:], table[first, :3])

    def _imu(self) -> ImuSamples | None:
        stamps, table = self._stamped(IMU)
        return ImuSamples(stamps, table[:, :3], table[:, 3:]) if len(stamps) else None

    def _stamped(self, kind: TopicKind) -> tuple[IntArray, FloatArray]:
        """Return stamps (N,) and the numbers that count (N, K) of a topic's messages; none where there is no topic."""
        wanted = getattr(self.options, kind.option)
        if wanted is None and not any(topic.message_type in kind.types for topic in self._topics):
            return np.empty(0, np.int64), np.empty((0, 0))
        topic = self._choose(kind, self._topics)
        layout = STAMPED[topic.message_type]
        stamps, numbers = array("q"), array("d")  # an hour of an IMU as tuples would be a gigabyte
        with RosBag(self.path) as bag:
            for number, (_, data) in enumerate(bag.messages(topic.name)):
                try:
                    t_ns, row = parse_stamped(data, layout, is_ros1=bag.is_ros1)
                except RecordingError as error:
                    raise RecordingError(f"message {number} on {topic.name} of {self.path}: {error}") from None
                stamps.append(t_ns)
                numbers.extend(row)
        table = np.frombuffer(numbers) if numbers else np.empty(0)
        return np.array(stamps, np.int64), table.reshape(len(stamps), len(layout.wanted))
