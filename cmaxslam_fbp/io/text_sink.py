"""Write the ECD's text layout, as a folder or a zip archive."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.calibration import format_ecd_calibration, format_ros_yaml
from cmaxslam_fbp.io.event_text import format_event_text
from cmaxslam_fbp.io.text_recording import CALIBRATION, CALIBRATION_YAML, ECD_SENSOR, EVENTS, IMU, POSES
from cmaxslam_fbp.io.trajectory_files import imu_lines, trajectory_lines
from cmaxslam_fbp.io.writing import EventSource


def small_files(source: EventSource) -> dict[str, str]:
    """Return the text of all files but the events'."""
    files: dict[str, str] = {}
    if (camera := source.camera) is not None:
        ordinary = camera.distortion_model == "plumb_bob"
        if ordinary:
            files[CALIBRATION] = format_ecd_calibration(camera)
        if not ordinary or source.sensor_size != ECD_SENSOR:
            files[CALIBRATION_YAML] = format_ros_yaml(camera)
    if (poses := source.ground_truth) is not None:
        files[POSES] = "\n".join(trajectory_lines(poses)) + "\n"
    if (imu := source.imu) is not None:
        files[IMU] = "\n".join(imu_lines(imu)) + "\n"
    return files


class FolderTextSink:
    """A folder of text files."""

    def __init__(self, source: EventSource, path: Path, compression: str = "none") -> None:
        self._source = source
        self._path = path
        self._events: IO[bytes]

    def __enter__(self) -> FolderTextSink:
        self._path.mkdir()
        self._events = (self._path / EVENTS).open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()
        if kind is None:
            for name, text in small_files(self._source).items():
                (self._path / name).write_text(text, newline="\n")

    def write(self, events: Events) -> None:
        """Append events."""
        self._events.write(format_event_text(events))


class ZipTextSink:
    """A zip archive of text files."""

    def __init__(self, source: EventSource, path: Path, compression: str = "none") -> None:
        self._source = source
        self._path = path
        self._archive: zipfile.ZipFile
        self._events: IO[bytes]

    def __enter__(self) -> ZipTextSink:
        self._archive = zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._events = self._archive.open(EVENTS, "w", force_zip64=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()
        with self._archive as archive:
            if kind is None:
                for name, text in small_files(self._source).items():
                    archive.writestr(name, text)

    def write(self, events: Events) -> None:
        """Append events."""
        self._events.write(format_event_text(events))
