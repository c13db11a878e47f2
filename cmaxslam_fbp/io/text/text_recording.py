"""A recording in the ECD's text layout: `events.txt`, `calib.txt`, `groundtruth.txt`, `imu.txt` in a folder or a zip.

The ECD's `calib.txt` tells neither the sensor's size nor a fisheye model; a `calib.yaml` beside it (in ROS's format)
does, and comes first.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar, TypeVar

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.bad_input import open_member, zip_members
from cmaxslam_fbp.io.calibration import (
    format_ecd_calibration,
    format_ros_yaml,
    parse_ecd_calibration,
    parse_yaml_calibration,
    small_text,
)
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.text.event_text import format_event_text, read_event_text
from cmaxslam_fbp.io.trajectory_files import imu_lines, parse_imu, parse_trajectory, trajectory_lines
from cmaxslam_fbp.io.writing import EventSource, Sink, WriteEvents
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

EVENTS, CALIBRATION, CALIBRATION_YAML = "events.txt", "calib.txt", "calib.yaml"
POSES, IMU = "groundtruth.txt", "imu.txt"

_T = TypeVar("_T")

ECD_SENSOR = SensorSize(240, 180)  # the layout does not tell the sensor's size; all its recordings are of this one


def _small_files(source: EventSource) -> dict[str, str]:
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


@contextmanager
def write_text_folder(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Make a folder of text files."""
    path.mkdir()
    with (path / EVENTS).open("wb") as file:
        yield lambda events: file.write(format_event_text(events))
    for name, text in _small_files(source).items():
        (path / name).write_text(text, newline="\n")


@contextmanager
def write_text_zip(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Make a zip archive of text files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open(EVENTS, "w", force_zip64=True) as file:
            yield lambda events: file.write(format_event_text(events))
        for name, text in _small_files(source).items():
            archive.writestr(name, text)


class TextRecording(Recording):
    """ECD text, in a folder or a zip archive (where the files may lie in a folder of their own)."""

    description = "a folder or .zip with the ECD's events.txt"
    endings = (".zip",)
    folder_file = EVENTS
    sinks: ClassVar[Mapping[str, Sink]] = {".zip": write_text_zip, "": write_text_folder}
    folder_files = (EVENTS, CALIBRATION, CALIBRATION_YAML, POSES, IMU)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell a folder by its events, an archive by its ending or its events."""
        return super().recognises(path) or EVENTS in zip_members(path)

    def _examine(self) -> None:
        self._is_zip = self.path.is_file()
        self._names = self._find()
        if EVENTS not in self._names:
            raise RecordingError(f"{self.path} has no {EVENTS}: an ECD recording has {EVENTS} and {CALIBRATION}")

    def _find(self) -> dict[str, str]:
        """Return where each of the files lies: in an archive all in one folder."""
        if not self._is_zip:
            return {name: name for name in self.folder_files if (self.path / name).is_file()}
        with zipfile.ZipFile(self.path) as archive:
            members = archive.namelist()
        folders = [name.removesuffix(EVENTS) for name in members if name.rsplit("/", 1)[-1] == EVENTS]
        if len(folders) > 1:
            listed = ", ".join(folder or "(none)" for folder in folders[:8])
            raise RecordingError(
                f"{self.path} has {len(folders)} recordings, in the folders {listed}: unpack it and give one of them"
            )
        return {name: folder + name for folder in folders for name in self.folder_files if folder + name in members}

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        if not self._is_zip:
            with (self.path / name).open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(self.path) as archive, open_member(archive, self._names[name]) as member:
            yield member  # type: ignore[misc]

    def _parsed(self, name: str, parse: Callable[[BinaryIO, str], _T]) -> _T | None:
        """Return what a file holds; None where there is no such file."""
        if name not in self._names:
            return None
        with self._open(name) as file:
            return parse(file, self._source(name))

    def _source(self, name: str) -> str:
        return f"{self.path}/{self._names[name]}"

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the files of the recording."""
        return [(name, "text", 1) for name in self._names]

    def _own_sensor_size(self) -> SensorSize | None:
        camera = self._yaml_calibration()
        return None if camera is None else SensorSize(camera.width, camera.height)

    @property
    def sensor_size(self) -> SensorSize:
        """The size that is known; else the ECD's, which all events must then fit."""
        return self.known_size or ECD_SENSOR

    def _yaml_calibration(self) -> Camera | None:
        return self._parsed(
            CALIBRATION_YAML, lambda file, name: parse_yaml_calibration(small_text(file, name), None, name)
        )

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        known = self.known_size is not None
        with self._open(EVENTS) as file:
            for piece in read_event_text(file, self._source(EVENTS)):
                x, y = int(piece.events.x.max()), int(piece.events.y.max())
                if not known and (x >= ECD_SENSOR.width or y >= ECD_SENSOR.height):
                    raise RecordingError(
                        f"{self.path} does not tell the sensor's size, and its events reach pixel ({x}, {y}), beyond "
                        f"the {ECD_SENSOR} of the ECD's DAVIS240C: give the size with --sensor-size WIDTHxHEIGHT"
                    )
                yield piece

    def _own_calibration(self) -> Camera | None:
        if (camera := self._yaml_calibration()) is not None:
            return camera
        return self._parsed(CALIBRATION, self._ecd_calibration)

    def _ecd_calibration(self, file: BinaryIO, source: str) -> Camera | None:
        text = small_text(file, source)
        return parse_ecd_calibration(text, self.calibrated_size, source) if text.strip() else None

    def _poses(self) -> RotationTrajectory | None:
        return self._parsed(POSES, parse_trajectory)

    def _imu(self) -> ImuSamples | None:
        return self._parsed(IMU, parse_imu)
