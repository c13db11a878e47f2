"""Write a recording: what is written, to which format, and that it appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cmaxslam_fbp.choices import FORMATS
from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.atomic_files import in_the_making
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


WriteEvents = Callable[[Events], object]
# Makes a file of a source at a path, with the compression that is wanted: a context that gives the function to append
# events with. Leaving it writes what remains.
Sink = Callable[[EventSource, Path, str], AbstractContextManager[WriteEvents]]


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

    `compression` is that of a bag's chunks: none, bz2 or lz4. The file appears whole or not at all. Ctrl-C ends the
    writing early: the file then holds the events so far.
    """
    sinks = _sinks()
    if path.suffix not in sinks:
        raise OutputError(f"the ending of {path} names no format that can be written: use {writable_endings()}")
    if path.name in {"", ".."}:
        raise OutputError(f"{path} is a place, not the name of a recording; name a new file or folder in it")
    count = 0
    interrupted = False
    with in_the_making(path) as temporary:
        _files_to_replace(path, overwrite)  # what is in the way is an error now, not after the work
        with sinks[path.suffix](source, temporary, compression) as write:
            try:
                for events in chunks:
                    write(events)
                    count += len(events)
                    if progress is not None:
                        progress(events)
            except KeyboardInterrupt:
                interrupted = True
        for file in _files_to_replace(path, overwrite):
            file.unlink()
    return Written(count, interrupted)


def _files_to_replace(path: Path, overwrite: bool) -> list[Path]:
    """Return the files of an earlier recording in the folder that a path names.

    Nothing but a recording of this program is ever replaced: an `OutputError` names what else is in the way.
    """
    if not os.path.lexists(path):
        return []
    if not overwrite:
        raise OutputError(f"{path} exists already; choose another name, or give --overwrite")
    if path.suffix and path.is_file():
        return []  # it gives way when the new one is moved to its place
    if path.suffix or not path.is_dir() or path.is_symlink():
        raise OutputError(f"{path} is not {'a file' if path.suffix else 'a folder'}; choose another name")
    written = {name for known in FORMATS.names() for name in FORMATS[known].folder_files}
    inside = sorted(path.iterdir())
    others = [item.name for item in inside if item.name not in written or item.is_dir()]
    if others:
        raise OutputError(
            f"{path} holds more than a recording: {', '.join(others[:3])}{' ...' * (len(others) > 3)}; "
            "choose another name, or move that away"
        )
    return inside


def writable_endings() -> str:
    """Return the endings that name a format to write, as part of a sentence."""
    endings = sorted(filter(None, _sinks()))
    return f"{', '.join(endings)} or none (a folder)"


def _sinks() -> dict[str, Sink]:
    return {ending: sink for name in FORMATS.names() for ending, sink in FORMATS[name].sinks.items()}
