"""Write a ROS 1 bag with the topics of an ECD bag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.rosbag.ros_bag import Ros1BagWriter
from cmaxslam_fbp.io.rosbag.ros_messages import serialize_ros1
from cmaxslam_fbp.io.trajectory_files import format_seconds
from cmaxslam_fbp.io.writing import EventSource, WriteEvents
from cmaxslam_fbp.nanoseconds import NS_PER_S

MESSAGE_NS = 10_000_000  # events of one message
_END_OF_BAG_TIME_NS = 2**31 * NS_PER_S  # ROS 1 has 32 bits for the seconds, but rosbags takes them as signed

EVENTS_TOPIC, CAMERA_INFO_TOPIC, IMU_TOPIC, POSES_TOPIC = (
    "/dvs/events",
    "/dvs/camera_info",
    "/dvs/imu",
    "/optitrack/davis",
)


@contextmanager
def write_bag(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Make a bag whose messages come in the order of time; poses and IMU samples before and after the events too."""
    with Ros1BagWriter(path, compression) as writer:
        messages = _Messages(source, writer)
        yield messages.write
        messages.write_reference_until(np.iinfo(np.int64).max)


class _Messages:
    """Puts events, and what else happened until then, into a bag."""

    def __init__(self, source: EventSource, writer: Ros1BagWriter) -> None:
        self._source = source
        self._writer = writer
        self._sequence = 0
        self._done = {IMU_TOPIC: 0, POSES_TOPIC: 0}

    def write(self, events: Events) -> None:
        """Append events, as messages of ten milliseconds each, and what else happened until their end."""
        if not len(events):
            return
        slots = events.t_ns // MESSAGE_NS
        edges = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), len(events)]
        for first, last in pairwise(edges):
            self._write_message(events[first:last])

    def _write_message(self, events: Events) -> None:
        end_ns = int(events.t_ns[-1])
        if int(events.t_ns[0]) < 0 or end_ns >= _END_OF_BAG_TIME_NS:
            raise OutputError(
                f"a ROS 1 bag holds times from 0 to 2^31 s, not {format_seconds(int(events.t_ns[0]))} s; "
                "write an .npz, a .zip or a folder"
            )
        self.write_reference_until(end_ns)
        data = serialize_ros1(events, self._source.sensor_size, end_ns, self._sequence)
        self._writer.write(EVENTS_TOPIC, "dvs_msgs/msg/EventArray", end_ns, data)
        if self._source.camera is not None:
            self._writer.write(CAMERA_INFO_TOPIC, "sensor_msgs/msg/CameraInfo", end_ns, self._camera_info(end_ns))
        self._sequence += 1

    def write_reference_until(self, end_ns: int) -> None:
        """Write the IMU samples and poses up to a time."""
        for topic, kind, samples, message in (
            (IMU_TOPIC, "sensor_msgs/msg/Imu", self._source.imu, self._imu),
            (POSES_TOPIC, "geometry_msgs/msg/PoseStamped", self._source.ground_truth, self._pose),
        ):
            if samples is not None:
                last = int(np.searchsorted(samples.t_ns, min(end_ns, _END_OF_BAG_TIME_NS - 1), side="right"))
                first = max(self._done[topic], int(np.searchsorted(samples.t_ns, 0)))
                for i in range(first, last):
                    self._writer.write(topic, kind, int(samples.t_ns[i]), message(i))
                self._done[topic] = max(first, last)

    def _header(self, stamp_ns: int, sequence: int) -> Any:
        time = self._writer.type("builtin_interfaces/msg/Time")(*divmod(stamp_ns, NS_PER_S))
        return self._writer.type("std_msgs/msg/Header")(sequence, time, "")

    def _camera_info(self, stamp_ns: int) -> Any:
        camera = self._source.camera
        assert camera is not None
        region = self._writer.type("sensor_msgs/msg/RegionOfInterest")(0, 0, 0, 0, False)
        return self._writer.type("sensor_msgs/msg/CameraInfo")(
            self._header(stamp_ns, self._sequence),
            camera.height,
            camera.width,
            camera.distortion_model,
            np.array(camera.distortion),
            camera.matrix.reshape(-1),
            np.eye(3).reshape(-1),
            np.hstack([camera.matrix, np.zeros((3, 1))]).reshape(-1),
            0,
            0,
            region,
        )

    def _imu(self, i: int) -> Any:
        imu = self._source.imu
        assert imu is not None
        vector = self._writer.type("geometry_msgs/msg/Vector3")
        quaternion = self._writer.type("geometry_msgs/msg/Quaternion")
        unknown, no_orientation = np.zeros(9), np.array([-1.0] + [0.0] * 8)  # ROS's sign of a missing orientation
        return self._writer.type("sensor_msgs/msg/Imu")(
            self._header(int(imu.t_ns[i]), i),
            quaternion(0.0, 0.0, 0.0, 1.0),
            no_orientation,
            vector(*imu.angular_velocity_rad_s[i].tolist()),
            unknown,
            vector(*imu.linear_acceleration_m_s2[i].tolist()),
            unknown,
        )

    def _pose(self, i: int) -> Any:
        poses = self._source.ground_truth
        assert poses is not None
        position = [0.0, 0.0, 0.0] if poses.positions_m is None else poses.positions_m[i].tolist()
        return self._writer.type("geometry_msgs/msg/PoseStamped")(
            self._header(int(poses.t_ns[i]), i),
            self._writer.type("geometry_msgs/msg/Pose")(
                self._writer.type("geometry_msgs/msg/Point")(*position),
                self._writer.type("geometry_msgs/msg/Quaternion")(*poses.quaternions_xyzw[i].tolist()),
            ),
        )
