"""A recording in memory, for events that lie in no file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


class MemoryRecording(Recording):
    """What `Recording.from_events` returns."""

    size_advice: ClassVar[str] = "give a camera, or sensor_size=(width, height)"

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
        self._camera, self._ground_truth, self._imu_samples = camera, ground_truth, imu
        if sensor_size is not None:
            self._given_size = SensorSize(*sensor_size)
            if camera is not None and (camera.width, camera.height) != self._given_size:
                raise CalibrationError(
                    f"the camera is one of {camera.width} x {camera.height} pixels, "
                    f"but the events are said to be of a sensor of {self._given_size}"
                )

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        for number, events in enumerate(self._chunks):
            yield Piece(events, f"chunk {number} of {self.path}")

    def _own_sensor_size(self) -> SensorSize | None:
        return None if self._camera is None else SensorSize(self._camera.width, self._camera.height)

    def _own_calibration(self) -> Camera | None:
        return self._camera

    def _poses(self) -> RotationTrajectory | None:
        return self._ground_truth

    def _imu(self) -> ImuSamples | None:
        return self._imu_samples

    def origin(self) -> tuple[str, str]:
        """Return the name, and the SHA-256 of the events."""
        total = hashlib.sha256()
        for events in self._chunks:
            for column in (events.t_ns, events.x, events.y, events.p):
                total.update(column.tobytes())
        return str(self.path), total.hexdigest()
