"""A recording in memory, for events that lie in no file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


class MemoryRecording(Recording):
    """What `Recording.from_events` returns."""

    size_advice = "give a camera, or sensor_size=(width, height)"

    def __init__(
        self,
        events: Events | Iterable[Events],
        camera: Camera | None,
        sensor_size: tuple[int, int] | None,
        ground_truth: RotationTrajectory | None,
        imu: ImuSamples | None,
        name: str,
    ) -> None:
        super().__init__(Path(name))
        self._chunks = [events] if isinstance(events, Events) else list(events)
        self.camera, self.ground_truth, self.imu = camera, ground_truth, imu
        size = sensor_size if camera is None else (camera.width, camera.height)
        self.known_size = None if size is None else SensorSize(*size)
        if sensor_size is not None and (given := SensorSize(*sensor_size)) != self.known_size:
            raise CalibrationError(f"the camera is one of {self.known_size} pixels, but the sensor_size is {given}")

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        for number, events in enumerate(self._chunks):
            yield Piece(events, f"chunk {number} of {self.path}")

    def origin(self) -> tuple[str, str | None]:
        """Return the name, and the SHA-256 of the events."""
        total = hashlib.sha256()
        for events in self._chunks:
            for column in (events.t_ns, events.x, events.y, events.p):
                total.update(column.tobytes())
        return str(self.path), total.hexdigest()
