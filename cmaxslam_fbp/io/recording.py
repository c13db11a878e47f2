"""What every recording gives, whatever file it lies in."""

from __future__ import annotations

import copy
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import CalibrationError, CmaxSlamError, RecordingError
from cmaxslam_fbp.events import Defects, Events, SensorSize
from cmaxslam_fbp.events.ordering import MAX_JUMP_BACK_NS, Piece, restore_order
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.calibration import fit_to_sensor, read_calibration, read_imu_alignment, read_sensor_size
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.io.writing import Sink, write_recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_LONGEST_SIDE_PX = 4096  # no event camera comes near; tables of directions grow with it
_LONGEST_S = 1e9  # thirty years, as nanoseconds far from what 64 bits hold

if TYPE_CHECKING:
    from cmaxslam_fbp.io.live.reader import LiveReader

_T = TypeVar("_T")


@dataclass
class EventStream:
    """One pass over the events of a recording: an iterator of `Events`, and what it had to mend so far."""

    chunks: Iterator[Events]
    defects: Defects = field(default_factory=Defects)

    def __iter__(self) -> Iterator[Events]:
        return self.chunks

    def __next__(self) -> Events:
        return next(self.chunks)


class Recording(ABC):
    """Events, sensor, calibration, and reference motion where there is any.

    Time is the recording's own clock in int64 nanoseconds; `start_s` and `duration_s` count from the first event.
    A file format is a subclass that is named in `choices.FORMATS`.

    Parameters
    ----------
    path : where it lies
    options : what the user says about it, where it cannot tell by itself

    Attributes
    ----------
    description : str
        What a user must have to read this format, for messages.
    endings : tuple of str
        Names of its files end so.
    first_bytes : bytes
        Its files start so, whatever their names; empty where that does not tell.
    folder_file : str
        A folder of this format has this file; empty where it is never a folder.
    sinks : mapping of str to Sink
        What writes this format, by the ending of the path ("" for a folder); nothing where it is only read.
    folder_files : tuple of str
        Names of all files in a folder that this format writes: only these are ever replaced.
    needs : tuple of str
        Modules without which it cannot be read; the extra `formats` installs them.
    size_advice : str
        What to do where the sensor's size is not known.
    damage_advice : str
        What to do where a file cannot be read.
    longest_disorder_ns : int
        Events are sorted that are late by up to this; all wait for it.
    live : LiveReader or None
        What reads a stream, of which there is only one pass; None for what can be read again.
    """

    description: ClassVar[str]
    endings: ClassVar[tuple[str, ...]] = ()
    first_bytes: ClassVar[bytes] = b""
    folder_file: ClassVar[str] = ""
    sinks: ClassVar[Mapping[str, Sink]] = {}
    folder_files: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    size_advice: ClassVar[str] = "give it with --sensor-size WIDTHxHEIGHT"
    damage_advice: ClassVar[str] = "it may be cut or damaged"
    longest_disorder_ns: ClassVar[int] = MAX_JUMP_BACK_NS
    live: LiveReader | None = None

    def __init__(self, path: Path, options: RecordingConfig | None = None) -> None:
        self.path = path
        self.options = options or RecordingConfig()
        self._reference_faults: list[str] = []
        self._examine()

    def _examine(self) -> None:  # noqa: B027 (not every format needs it)
        """Read what must be known before anything else: a header, or what a file contains."""

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell whether a path is of this format: by its name, or by how the file starts."""
        if path.is_dir():
            return bool(cls.folder_file) and (path / cls.folder_file).is_file()
        return path.suffix in cls.endings or (bool(cls.first_bytes) and starts_with(path, cls.first_bytes))

    @staticmethod
    def from_events(
        events: Events | Iterable[Events],
        *,
        camera: Camera | None = None,
        sensor_size: tuple[int, int] | None = None,
        ground_truth: RotationTrajectory | None = None,
        imu: ImuSamples | None = None,
        name: str = "events in memory",
    ) -> Recording:
        """Return a recording of events in memory; `Events.from_arrays` makes them of NumPy arrays.

        They are treated as those of a file: sorted by time, and dropped where they lie outside the sensor.

        Parameters
        ----------
        events : all of them, or in chunks
        camera : the calibrated camera, which a SLAM needs
        sensor_size : width and height in pixels, where there is no camera
        ground_truth : reference poses, camera to world
        imu : inertial measurements
        name : for messages and results
        """
        return MemoryRecording(events, camera, sensor_size, ground_truth, imu, name)

    @abstractmethod
    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        """Yield the events as they lie in the file; those before `skip_before_ns` may be left out."""

    def _own_sensor_size(self) -> SensorSize | None:
        """Return the size that the recording itself tells, if any."""
        return None

    def _own_calibration(self) -> Camera | None:
        """Return the calibration that the recording holds, if any."""
        return None

    def _poses(self) -> RotationTrajectory | None:
        """Read the reference poses."""
        return None

    def _imu(self) -> ImuSamples | None:
        """Read the inertial measurements."""
        return None

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name, type and number of messages of each part of the recording."""
        return []

    def origin(self) -> tuple[str, str | None]:
        """Return where the recording lies, in full, and the SHA-256 of its content, where it can be read again."""
        try:
            return str(self.path.resolve()), digest(self.path)
        except OSError as error:  # it has gone since: what was computed from it is still worth keeping
            return str(self.path), f"unknown: {error.strerror or error}"

    def _read(self, part: Callable[[], _T]) -> _T:
        """Return a part of the recording; whatever is wrong with it is an error of one line."""
        with one_line_errors(self.path, self.damage_advice):
            return part()

    @property
    def camera_number(self) -> int:
        """Which of several cameras of the same size in a calibration file it is: 0 the first, or left one."""
        return 0

    @cached_property
    def known_size(self) -> SensorSize | None:
        """The sensor's size as the user says, else as the recording tells, else as the given calibration does."""
        options = self.options
        size = SensorSize(*options.sensor_size) if options.sensor_size else self._read(self._own_sensor_size)
        if size is None and options.calibration:
            size = read_sensor_size(options.calibration, options.calibration_scale or 1.0)
        if size is not None and not 1 <= min(size) <= max(size) <= _LONGEST_SIDE_PX:
            raise RecordingError(f"{self.path}: no sensor has {size} pixels; {self.size_advice}")
        return size

    @property
    def sensor_size(self) -> SensorSize:
        """Width and height of the sensor in pixels."""
        if self.known_size is None:
            raise RecordingError(f"{self.path} does not tell the sensor's size: {self.size_advice}")
        return self.known_size

    @property
    def calibrated_size(self) -> SensorSize:
        """The sensor's size at the resolution of its calibration, for one that does not tell it."""
        return self.sensor_size.scaled(1 / (self.options.calibration_scale or 1.0))

    @cached_property
    def camera(self) -> Camera | None:
        """The calibrated camera, or None: that of the given calibration first, else the recording's own."""
        file = self.options.calibration
        if file is not None:
            camera: Camera | None = read_calibration(file, self.calibrated_size, self.camera_number)
        else:
            camera = self._read(self._own_calibration)
        if camera is None:
            return None
        return fit_to_sensor(camera, self.sensor_size, self.options.calibration_scale, str(file or self.path))

    def with_camera(self, camera: Camera) -> Recording:
        """Return the same recording, seen through another lens."""
        other = copy.copy(self)
        other.__dict__["camera"] = camera  # where the cached property keeps it
        return other

    def require_camera(self) -> Camera:
        """Return the calibrated camera; a `CalibrationError` where there is none."""
        if self.camera is None:
            raise CalibrationError(
                f"{self.path} has no calibration: give one with --calib (an ECD calib.txt, an OpenCV, ROS, Kalibr or "
                "DSEC YAML file, or Basalt's JSON), or let `cmaxslam-fbp calibrate` find it; `run --calibrate` does "
                "both"
            )
        return self.camera

    @cached_property
    def ground_truth(self) -> RotationTrajectory | None:
        """The reference orientation, camera to world: that of the given file first, else the recording's own.

        None where there is none, or none of the recording's own that can be right.
        """
        file = self.options.reference
        return self._reference(self._poses) if file is None else read_trajectory(file)

    @cached_property
    def imu(self) -> ImuSamples | None:
        """The inertial measurements; None where there are none, or none that can be right."""
        return self._reference(self._imu)

    def _reference(self, part: Callable[[], _T | None]) -> _T | None:
        """Return a part of the reference; what is wrong with it is kept for `check_reference`."""
        try:
            return self._read(part)
        except CmaxSlamError as error:
            self._reference_faults.append(f"a part of the reference is left out: {str(error)[:240]}")
            return None

    def check_reference(self) -> list[str]:
        """Read the reference poses and the IMU; return one line for each that cannot be used, and why."""
        _ = self.ground_truth, self.imu
        return list(self._reference_faults)

    @property
    def gyroscope(self) -> AngularVelocities | None:
        """The gyroscope's angular velocities, or None; in the camera's axes and time where --calib tells them."""
        if self.imu is None:
            return None
        file = self.options.calibration
        alignment = None if file is None else read_imu_alignment(file)
        return self.imu.gyroscope if alignment is None else alignment.apply(self.imu.gyroscope)

    @cached_property
    def start_ns(self) -> int:
        """Stamp of the first event on the sensor."""
        for chunk in self._ordered(Defects(), None):
            return int(chunk.t_ns[0])
        raise RecordingError(f"{self.path} has no events")

    def _ordered(self, defects: Defects, skip_before_ns: int | None) -> Iterator[Events]:
        """Yield the events on the sensor, ordered by time."""
        width, height = self.sensor_size
        for events in restore_order(self._readable_pieces(skip_before_ns), defects, self.longest_disorder_ns):
            if events.x.max() >= width or events.y.max() >= height:
                inside = events[(events.x < width) & (events.y < height)]
                defects.outside_sensor += len(events) - len(inside)
                events = inside
            if len(events):
                yield events

    def _readable_pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with one_line_errors(self.path, self.damage_advice):
            yield from self._pieces(skip_before_ns)

    def chunks(self, start_s: float | None = None, duration_s: float | None = None) -> EventStream:
        """Return a pass over the events of the half-open range `[start_s, start_s + duration_s)`, ordered by time.

        An empty range is a `RecordingError`, raised when the pass ends without an event.
        """
        if start_s is not None and not 0 <= start_s <= _LONGEST_S:
            raise RecordingError(f"the start must be 0 s or later, up to {_LONGEST_S:g} s, not {start_s} s")
        if duration_s is not None and not 0 < duration_s <= _LONGEST_S:
            raise RecordingError(f"the duration must be positive, up to {_LONGEST_S:g} s, not {duration_s} s")
        defects = Defects()
        return EventStream(self._range(start_s, duration_s, defects), defects)

    def _range(self, start_s: float | None, duration_s: float | None, defects: Defects) -> Iterator[Events]:
        limited = start_s is not None or duration_s is not None
        first_ns = self.start_ns + round(start_s * NS_PER_S) if start_s else None
        skip_ns = None if first_ns is None else first_ns - MAX_JUMP_BACK_NS
        found = False
        last_ns: int | None = None
        for events in self._ordered(defects, skip_ns):
            last_ns = int(events.t_ns[-1])
            if first_ns is None:
                first_ns = int(events.t_ns[0])
            end_ns = last_ns + 1 if duration_s is None else first_ns + round(duration_s * NS_PER_S)
            if events.t_ns[0] >= end_ns:
                break
            events = events.between(first_ns, end_ns)
            if len(events):
                found = True
                yield events
        if not found:
            if not limited:
                raise RecordingError(f"{self.path} has no events on its sensor of {self.sensor_size} pixels")
            raise RecordingError(
                f"no events of {self.path} lie between {start_s or 0.0:g} s and "
                f"{'the end' if duration_s is None else f'{(start_s or 0.0) + duration_s:g} s'} after the first one"
                + (f"; the last one comes at {(last_ns - self.start_ns) / NS_PER_S:.6f} s" if last_ns else "")
            )

    def convert(
        self, path: str | os.PathLike[str], *, start_s: float | None = None, duration_s: float | None = None
    ) -> int:
        """Write the recording, or a range of it, in the format of the path's ending; return the event count."""
        return write_recording(self, self.chunks(start_s, duration_s), Path(path)).events


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


def starts_with(path: Path, first_bytes: bytes) -> bool:
    """Tell whether a path is a file that starts with some bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(first_bytes)) == first_bytes
