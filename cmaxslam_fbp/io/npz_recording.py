"""A recording in a NumPy archive, for anyone's data.

Arrays `x`, `y`, `p` (1 or True for brighter; 0, False or -1 for darker) and the time as `t_ns` (integer nanoseconds),
or as `t`: floating-point seconds, or integers in the unit that the string `time_unit` names (s, ms, us or ns;
nanoseconds where it is missing). Optional: `width` and `height`; `intrinsics` (fx fy cx cy), `distortion` and
`distortion_model`; `groundtruth_t_ns`, `groundtruth_xyzw` and `groundtruth_positions_m`; `imu_t_ns`,
`imu_angular_velocity_rad_s` and `imu_linear_acceleration_m_s2`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.calibration import distortion_model, read_sensor_size
from cmaxslam_fbp.io.recording import Recording, RecordingOptions
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_EVENTS_PER_CHUNK = 500_000
_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_FASTEST_EVENTS_PER_NS = 1.0  # no sensor comes near a thousand million events a second


class NpzRecording(Recording):
    """An `.npz` archive, read in blocks: it may be larger than the memory."""

    def __init__(self, path: Path, options: RecordingOptions) -> None:
        self.path = path
        self.options = options
        try:
            with zipfile.ZipFile(path) as archive:
                self._members = {name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")}
        except (zipfile.BadZipFile, EOFError) as error:
            raise RecordingError(f"{path} cannot be read as a NumPy archive: {error}") from None
        self._time_name = "t_ns" if "t_ns" in self._members else "t"
        missing = [name for name in (self._time_name, "x", "y", "p") if name not in self._members]
        if missing:
            raise RecordingError(
                f"{path} lacks the arrays {', '.join(missing)}; it has {', '.join(sorted(self._members)) or 'none'}"
            )

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name and type of the arrays, and their lengths."""
        with zipfile.ZipFile(self.path) as archive:
            rows = []
            for name in sorted(self._members):
                with archive.open(f"{name}.npy") as member:
                    shape, dtype = _read_header(member, f"{self.path}/{name}")
                    rows.append((name, str(dtype), shape[0] if shape else 1))
        return rows

    def _load(self, *names: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return small arrays, or None where one of them is missing."""
        if not self._members.issuperset(names):
            return None
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                return {name: archive[name] for name in names}
        except (ValueError, zipfile.BadZipFile, EOFError) as error:
            raise RecordingError(f"{self.path} has an array that cannot be read: {error}") from None

    @cached_property
    def sensor_size(self) -> SensorSize:
        """The size that the user, the archive or the calibration gives."""
        if self.options.sensor_size is not None:
            return self.options.sensor_size
        if size := self._load("width", "height"):
            return SensorSize(int(size["width"]), int(size["height"]))
        if self.options.calibration is not None and (named := read_sensor_size(self.options.calibration)):
            return named
        raise RecordingError(
            f"{self.path} does not tell the sensor's size: add the numbers 'width' and 'height' to it, "
            "or give --sensor-size WIDTHxHEIGHT"
        )

    def _unit_ns(self, dtype: np.dtype) -> int:
        if self._time_name == "t_ns":
            return 1
        named = self._load("time_unit")
        unit = str(named["time_unit"]) if named else ("s" if dtype.kind == "f" else "ns")
        if unit not in _UNIT_NS:
            raise RecordingError(f"{self.path} has the time_unit {unit!r}; it must be one of {', '.join(_UNIT_NS)}")
        return _UNIT_NS[unit]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self.path))
            columns: dict[str, tuple[IO[bytes], np.dtype]] = {}
            lengths = {}
            for name in (self._time_name, "x", "y", "p"):
                member = stack.enter_context(archive.open(f"{name}.npy"))
                shape, dtype = _read_header(member, f"{self.path}/{name}")
                if len(shape) != 1 or dtype.kind not in "biuf":
                    raise RecordingError(
                        f"{self.path}/{name} is {dtype} of shape {shape}; it must be a list of numbers"
                    )
                columns[name] = member, dtype
                lengths[name] = shape[0]
            if len(set(lengths.values())) != 1:
                raise RecordingError(f"the arrays of {self.path} differ in length: {lengths}")
            count = lengths["x"]
            unit_ns = self._unit_ns(columns[self._time_name][1])
            for first in range(0, count, _EVENTS_PER_CHUNK):
                block = {
                    name: _read_block(member, dtype, min(_EVENTS_PER_CHUNK, count - first), f"{self.path}/{name}")
                    for name, (member, dtype) in columns.items()
                }
                t_ns = self._to_ns(block[self._time_name], unit_ns, first)
                x, y = self._to_pixels(block["x"], "x", first), self._to_pixels(block["y"], "y", first)
                if first == 0:
                    self._require_plausible(t_ns)
                events = Events(t_ns, x, y, self._to_polarity(block["p"], first))
                yield Piece(events, f"the events {first} to {first + len(events) - 1} of {self.path}")

    def _to_ns(self, t: npt.NDArray[Any], unit_ns: int, first: int) -> npt.NDArray[np.int64]:
        if t.dtype.kind != "f":
            return t.astype(np.int64) * unit_ns
        bad = ~np.isfinite(t)
        if bad.any():
            raise RecordingError(f"{self.path}: the time of event {first + int(np.argmax(bad))} is not a finite number")
        if t.dtype.itemsize < 8 and np.abs(t).max() * unit_ns > 1e10:
            raise RecordingError(f"{self.path} has times in {t.dtype}, which cannot hold microseconds: use float64")
        # Whole and fractional parts apart: the product of the whole time would be rounded to 256 ns at Unix times.
        # There the seconds themselves are rounded to 238 ns: the microseconds that were meant come back by rounding.
        whole = np.floor(t)
        step_ns = 1000 if np.spacing(np.abs(t).max()) * unit_ns > 100 else 1
        return whole.astype(np.int64) * unit_ns + np.rint((t - whole) * (unit_ns / step_ns)).astype(np.int64) * step_ns

    def _to_pixels(self, values: npt.NDArray[Any], name: str, first: int) -> npt.NDArray[np.uint16]:
        pixels = values.astype(np.uint16) if values.dtype != np.uint16 else values
        wrong = pixels != values
        if wrong.any():
            place = int(np.argmax(wrong))
            raise RecordingError(f"{self.path}: {name} of event {first + place} is {values[place]}, not a pixel")
        return pixels

    def _to_polarity(self, values: npt.NDArray[Any], first: int) -> npt.NDArray[np.uint8]:
        wrong = (values != 0) & (values != 1) & ((values != -1) if values.dtype.kind in "if" else True)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise RecordingError(
                f"{self.path}: the polarity of event {first + place} is {values[place]}, none of 0, 1 and -1"
            )
        return (values > 0).astype(np.uint8)

    def _require_plausible(self, t_ns: npt.NDArray[np.int64]) -> None:
        """Refuse times that make more events a second than any sensor gives: they count in another unit."""
        span_ns = int(t_ns.max() - t_ns.min()) if len(t_ns) else 0
        if len(t_ns) > 1000 and span_ns > 0 and len(t_ns) / span_ns > _FASTEST_EVENTS_PER_NS:
            raise RecordingError(
                f"{self.path} would have {len(t_ns) / span_ns * 1e9:.2g} events a second: its times are not in "
                "nanoseconds; add the string 'time_unit' (s, ms, us or ns) to the archive"
            )

    def _own_calibration(self) -> Camera | None:
        found = self._load("intrinsics")
        if found is None:
            return None
        fx, fy, cx, cy = (float(number) for number in found["intrinsics"])
        lens = self._load("distortion")
        model = self._load("distortion_model")
        return Camera(
            *self.sensor_size,
            fx,
            fy,
            cx,
            cy,
            tuple(lens["distortion"].tolist()) if lens else (),
            distortion_model(str(model["distortion_model"])) if model else "plumb_bob",
        )

    def _poses(self) -> RotationTrajectory | None:
        found = self._load("groundtruth_t_ns", "groundtruth_xyzw")
        if found is None:
            return None
        positions = self._load("groundtruth_positions_m")
        return RotationTrajectory(
            found["groundtruth_t_ns"],
            found["groundtruth_xyzw"],
            positions["groundtruth_positions_m"] if positions else None,
        )

    def _imu(self) -> ImuSamples | None:
        found = self._load("imu_t_ns", "imu_angular_velocity_rad_s", "imu_linear_acceleration_m_s2")
        return None if found is None else ImuSamples(*found.values())


def _read_header(member: IO[bytes], source: str) -> tuple[tuple[int, ...], np.dtype]:
    try:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(member)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{source} is not a NumPy array: {error}") from None
    if fortran and len(shape) > 1:
        raise RecordingError(f"{source} has the shape {shape}; it must be a list of numbers")
    return shape, dtype


def _read_block(member: IO[bytes], dtype: np.dtype, count: int, source: str) -> npt.NDArray[Any]:
    try:
        data = member.read(count * dtype.itemsize)
    except (zipfile.BadZipFile, EOFError) as error:
        raise RecordingError(f"{source} cannot be read: {error}; the archive may be cut") from None
    if len(data) != count * dtype.itemsize:
        raise RecordingError(f"{source} ends too early: the archive is cut")
    return np.frombuffer(data, dtype)
