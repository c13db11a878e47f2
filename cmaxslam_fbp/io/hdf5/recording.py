"""A recording in an HDF5 file: those of DSEC, VECtor, TUM-VIE, M3ED, MVSEC and Prophesee, MATLAB 7.3, and our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import MAX_JUMP_BACK_NS, Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.hdf5.companions import find_companions
from cmaxslam_fbp.io.hdf5.event_columns import EventsReader, choose_place, find_events
from cmaxslam_fbp.io.hdf5.file import is_group, is_hdf5, members, open_hdf5
from cmaxslam_fbp.io.hdf5.reference import read_array, read_camera, read_groundtruth, read_imu, read_resolution
from cmaxslam_fbp.io.hdf5.sink import write_hdf5
from cmaxslam_fbp.io.hdf5.texts import read_attribute
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.writing import Sink
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

MVSEC_SENSOR = SensorSize(346, 260)  # that of all its recordings
_SIDES = ("left", "right")


class Hdf5Recording(Recording):
    """An HDF5 file, read in slabs: it may be larger than the memory."""

    description = "an HDF5 file (DSEC, M3ED, TUM-VIE, MVSEC, ...)"
    endings = (".h5", ".hdf5")
    needs = ("h5py", "hdf5plugin")
    sinks: ClassVar[Mapping[str, Sink]] = {".h5": write_hdf5, ".hdf5": write_hdf5}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell a file by its signature, whatever its name."""
        return is_hdf5(path)

    def _examine(self) -> None:
        with open_hdf5(self.path) as file:
            self._place = choose_place(find_events(file), self.options.events_dataset, self.path)
        self._companions = find_companions(self.path, self._place.name, self.camera_number)

    @property
    def camera_number(self) -> int:
        """1 for the right one of two cameras, by the names of the data set, the file and its folders, else 0."""
        for name in (self._place.name, self.path.stem, *(parent.name for parent in self.path.absolute().parents[:2])):
            words = re.split(r"[^a-z]+", name.lower())
            for number, side in enumerate(_SIDES):
                if side in words:
                    return number
        return 0

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name and type of the data sets that the events' group holds or stands beside, and their lengths."""

        def rows() -> list[tuple[str, str, int]]:
            with open_hdf5(self.path) as file:
                thing = file[self._place.name]
                group = thing if is_group(thing) else thing.parent
                found = [*members(group), *(members(file) if group.name != "/" else ())]
                return [
                    (dataset.name, f"{dataset.dtype} {dataset.shape}", int(dataset.shape[0] if dataset.shape else 1))
                    for _, dataset in found
                    if hasattr(dataset, "dtype") and dataset.shape is not None
                ]

        return self._read(rows)

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with open_hdf5(self.path) as file:
            reader = EventsReader(file, self._place, self.path)
            start = 0 if skip_before_ns is None else _slab_before(reader, skip_before_ns)
            for first in range(start, reader.count, reader.slab):
                events = reader.read(first)
                place = f"the events {first} to {first + len(events) - 1} of {self.path}{self._place.name}"
                yield Piece(events, place, reader.note)

    def _own_sensor_size(self) -> SensorSize | None:
        with open_hdf5(self.path) as file:
            thing = file[self._place.name]
            if (size := read_resolution(thing, self.path)) is not None:
                return size
            for holder in (file, thing):  # of Prophesee's
                geometry = read_attribute(holder, "geometry", self.path) or ""
                if (size := SensorSize.from_text(geometry)) is not None:
                    return size
            image = thing.parent.get("image_raw") if not is_group(thing) else None
            if image is not None and len(image.shape) == 3:
                return SensorSize(int(image.shape[2]), int(image.shape[1]))
            if {"width", "height"} <= set(thing):
                return SensorSize(*(int(read_array(thing, n, self.path).reshape(-1)[0]) for n in ("width", "height")))
        if self._place.name.startswith("/davis/"):
            return MVSEC_SENSOR
        return self._companions.sensor_size()

    def _own_calibration(self) -> Camera | None:
        with open_hdf5(self.path) as file:
            camera = read_camera(file[self._place.name], self.path)
        if camera is not None or self._companions.calibration is None:
            return camera
        return self._companions.camera(self.calibrated_size)

    def _poses(self) -> RotationTrajectory | None:
        with open_hdf5(self.path) as file:
            poses = read_groundtruth(file, self.path)
        return self._companions.poses() if poses is None else poses

    def _imu(self) -> ImuSamples | None:
        with open_hdf5(self.path) as file:
            imu = read_imu(file, self._place.name, self.path)
        return self._companions.imu() if imu is None else imu


def _slab_before(reader: EventsReader, time_ns: int) -> int:
    """Return the start of a slab before which no event is of interest, by bisection: times rise but for disorder."""
    low, high = 0, max(-(-reader.count // reader.slab) - 1, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if reader.time_ns(middle * reader.slab) < time_ns - MAX_JUMP_BACK_NS:
            low = middle
        else:
            high = middle - 1
    return low * reader.slab
