"""Write a recording: what is written, to which format, and that it appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


class EventSource(Protocol):
    """What can be written as a recording: another recording, or a simulation."""

    @property
    def sensor_size(self) -> SensorSize:
        """Width and height of the sensor in pixels."""

    @property
    def camera(self) -> Camera | None:
        """The calibrated camera, if it is known."""

    @property
    def ground_truth(self) -> RotationTrajectory | None:
        """The reference poses, if there are any."""

    @property
    def imu(self) -> ImuSamples | None:
        """The inertial measurements, if there are any."""


class Sink(Protocol):
    """A file in the making. Leaving it writes what remains: the file is then complete."""

    def __enter__(self) -> Sink:
        """Start."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file."""

    def write(self, events: Events) -> None:
        """Append events."""


@dataclass(frozen=True)
class Written:
    """How a writing ended."""

    events: int
    interrupted: bool


def write_recording(
    source: EventSource,
    chunks: Iterable[Events],
    path: Path,
    *,
    compression: str = "none",
    overwrite: bool = False,
    progress: Callable[[Events], None] | None = None,
) -> Written:
    """Write the events of `chunks`, and all else that the source has, in the format that the path's ending names.

    `.bag` is a ROS 1 bag as the ECD has them (`compression`: none, bz2 or lz4), `.npz` a NumPy archive, `.zip` and a
    name without ending the ECD's text. The work is done beside the path and moved there at the end. Ctrl-C ends the
    writing early: the file then holds the events so far.
    """
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already; choose another name, or give --overwrite")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    count = 0
    interrupted = False
    try:
        with _open_sink(source, path, temporary, compression) as sink:
            try:
                for events in chunks:
                    sink.write(events)
                    count += len(events)
                    if progress is not None:
                        progress(events)
            except KeyboardInterrupt:
                interrupted = True
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
    return Written(count, interrupted)


def _open_sink(source: EventSource, path: Path, temporary: Path, compression: str) -> Sink:
    if path.suffix == ".bag":
        from cmaxslam_fbp.io.bag_sink import BagSink

        return BagSink(source, temporary, compression)
    if path.suffix == ".npz":
        from cmaxslam_fbp.io.npz_sink import NpzSink

        return NpzSink(source, temporary)
    if path.suffix == ".zip":
        from cmaxslam_fbp.io.text_sink import ZipTextSink

        return ZipTextSink(source, temporary)
    if path.suffix == "":
        from cmaxslam_fbp.io.text_sink import FolderTextSink

        return FolderTextSink(source, temporary)
    raise OutputError(
        f"the ending of {path} names no format that can be written: use .bag, .npz, .zip (ECD text) or none (a folder)"
    )
