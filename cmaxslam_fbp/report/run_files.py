"""A finished run, read back from its folder."""

from __future__ import annotations

import csv
import json
import os
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.errors import CmaxSlamError, OutputError, short_line
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.report.packet_pictures import AFTER, BEFORE
from cmaxslam_fbp.report.run_values import Metrics, ReportData, RunFigures, Values
from cmaxslam_fbp.trajectory import RotationTrajectory

REPORT_DATA = "report_data.json"
_NEEDED = ("run.json", "trajectory.txt", "panorama.npy")
_SIDES = range(32, 16385)  # pixels of a map
_LARGEST = 1e15

Columns = dict[str, Any]  # arrays of numbers (N,) or lists of N texts, by name
Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class RunFiles:
    """What the folder of a run holds.

    Attributes
    ----------
    path : Path
        The folder.
    run : dict
        The figures of `run.json`.
    metrics : dict or None
        The errors of `metrics.json`, where the recording had reference poses.
    trajectory : RotationTrajectory
        `R_wc` at 200 Hz.
    panorama : (height, width) float32
        The map.
    velocities, windows, deviations : dict of str to array or list of str
        The columns of `angular_velocity.csv`, `windows.csv` and `trajectory_deviation.csv`; empty where there is no
        such file.
    reference : dict
        What `report_data.json` says of camera, ground truth and gyroscope; empty where there is no such file.
    packet_pictures : tuple of bytes
        A packet of events before and after the warp, as PNG; empty where there are none.
    log_intensity : (height, width) float32 or None
        The brightness of the scene, NaN where it was not seen; None where the run has none.
    faults : list of str
        What is wrong with files that are left out.
    """

    path: Path
    run: dict[str, Any]
    metrics: dict[str, Any] | None
    trajectory: RotationTrajectory
    panorama: SingleArray
    velocities: Columns
    windows: Columns
    deviations: Columns
    reference: dict[str, Any]
    packet_pictures: tuple[bytes, ...]
    log_intensity: SingleArray | None
    faults: list[str]

    @staticmethod
    def read(path: Path) -> RunFiles:
        """Read a run folder; an `OutputError` says what is wrong with one that is not.

        Without `run.json`, trajectory or map there is no run; of the other files those that are damaged are left out,
        and named in `faults`.
        """
        if not os.path.isdir(path):
            raise OutputError(f"{path} is not a folder; give the folder of a run (the --out of cmaxslam-fbp run)")
        missing = [name for name in _NEEDED if not (path / name).is_file()]
        if missing:
            raise OutputError(f"{path} is not the folder of a run: {' and '.join(missing)} missing")
        faults: list[str] = []

        def optional(name: str, read: Callable[[Path], Part]) -> Part | None:
            try:
                return _read(path / name, read) if (path / name).is_file() else None
            except OutputError as error:
                faults.append(short_line(f"left out: {error}"))
                return None

        pictures = [optional(name, _read_png) for name in (BEFORE, AFTER)]
        return RunFiles(
            path=path,
            run=_read(path / "run.json", _read_json(RunFigures)),
            metrics=optional("metrics.json", _read_json(Metrics)),
            trajectory=_read(path / "trajectory.txt", read_trajectory),
            panorama=_read(path / "panorama.npy", _read_map),
            velocities=optional("angular_velocity.csv", _read_velocities) or {},
            windows=optional("windows.csv", _read_windows) or {},
            deviations=optional("trajectory_deviation.csv", _read_deviations) or {},
            reference=optional(REPORT_DATA, _read_json(ReportData)) or {},
            packet_pictures=tuple(picture for picture in pictures if picture is not None),
            log_intensity=optional("intensity.npy", _read_intensity),
            faults=faults,
        )

    @property
    def positions(self) -> FloatArray | None:
        """Where a hand-held camera was (M, 3), in the unit of the run; None of one that only turns."""
        positions = self.trajectory.positions_m
        return positions if positions is not None and positions.any() else None

    @property
    def name(self) -> str:
        """The recording's name, without folder and ending."""
        return Path(str(self.run.get("input", self.path.name))).stem

    @property
    def start_ns(self) -> int:
        """The time from which the report counts seconds: the first event."""
        return int(self.run.get("start_ns", self.trajectory.start_ns))

    @property
    def duration_s(self) -> float:
        """Seconds from the first event to the last one."""
        return float(self.run.get("duration_s", (self.trajectory.end_ns - self.trajectory.start_ns) / 1e9))

    @property
    def times_s(self) -> FloatArray:
        """Times of the trajectory's poses in seconds from the first event, (M,)."""
        return (self.trajectory.t_ns - self.start_ns) / 1e9

    def seconds(self, stamps_s: FloatArray) -> FloatArray:
        """Return stamps in seconds of the recording's clock as seconds from the first event."""
        return stamps_s - self.start_ns / 1e9

    def field_deg(self) -> float:
        """Return the camera's horizontal field of view in degrees; 60 where the camera is not known."""
        camera = self.reference.get("camera")
        if not camera or not camera["fx"] > 0:
            return 60.0
        return float(np.degrees(2 * np.arctan(camera["width"] / 2 / camera["fx"])))

    def field_of_view(self) -> FloatArray | None:
        """Return the sensor's border as unit directions (K, 3) in the camera frame, where it is known."""
        border = self.reference.get("field_of_view")
        return np.array(border, np.float64) if border else None


def _read(path: Path, read: Callable[[Path], Part]) -> Part:
    """Read a file; whatever is wrong with it is an `OutputError` that names it.

    The one place for all files of a run: they may be cut or changed in any way, and so may what NumPy, csv and json
    raise or warn of.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return read(path)
    except CmaxSlamError:
        raise
    except Exception as error:
        raise OutputError(f"{path} is damaged: {_words(error)}; run it again, or take a copy") from error


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return " ".join(str(error).split()) or type(error).__name__


def _read_json(kind: type[Values]) -> Callable[[Path], dict[str, Any]]:
    """Return what reads the values of a JSON file, without those that are null in it."""

    def read(path: Path) -> dict[str, Any]:
        values = kind.model_validate(json.loads(path.read_text(encoding="utf-8"))).model_dump(exclude_unset=True)
        return {name: value for name, value in values.items() if value is not None}

    return read


def _read_image(path: Path) -> SingleArray:
    image = np.lib.format.open_memmap(path, mode="r")  # checks the size that the header claims, and takes no memory
    if image.ndim != 2 or image.dtype.kind not in "fiu" or any(side not in _SIDES for side in image.shape):
        raise ValueError(f"{image.dtype} of shape {image.shape} is no map")
    return np.array(image, np.float32)


def _read_intensity(path: Path) -> SingleArray:
    image = _read_image(path)
    if (np.abs(image) > _LARGEST).any():  # NaN is where nothing was seen
        raise ValueError("some pixels are not finite")
    return image


def _read_map(path: Path) -> SingleArray:
    panorama = _read_image(path)
    if not (np.isfinite(panorama) & (panorama >= 0)).all():
        raise ValueError("some pixels are negative or not finite")
    return panorama


def _read_png(path: Path) -> bytes:
    data = path.read_bytes()
    if not (data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")):
        raise ValueError("it is no PNG, or is cut")
    return data


def _read_velocities(path: Path) -> Columns:
    axes = [f"{prefix}w{axis}_rad_s" for prefix in ("", "frontend_") for axis in "xyz"]
    return _read_columns(path, ["t_s", *axes])


def _read_windows(path: Path) -> Columns:
    columns = _read_columns(path, ["start_s", "end_s", "events", "score"], ["tracking", "match"])
    if columns:
        columns["match"] = np.array([float(value or "nan") for value in columns["match"]])
        if not (columns["end_s"] - columns["start_s"] > 1e-9).all():
            raise ValueError("a window ends before it begins")
    return columns


def _read_deviations(path: Path) -> Columns:
    columns = _read_columns(path, ["t_s", *(f"sigma_{axis}_deg" for axis in "xyz")])
    if columns and not (np.diff(columns["t_s"]) > 0).all():
        raise ValueError("times do not increase")
    return columns


def _read_columns(path: Path, numbers: list[str], texts: Sequence[str] = ()) -> Columns:
    """Return columns of a table with a header; none where there is no row."""
    found: dict[str, Any] = {**{name: array("d") for name in numbers}, **{t: [] for t in texts}}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file, strict=True), start=2):
            if None in row or None in row.values():
                raise ValueError(f"line {line} has more or fewer columns than the header")
            if missing := [name for name in found if name not in row]:
                raise ValueError(f"there is no column {', '.join(missing)}")
            for name, values in found.items():
                values.append(float(row[name]) if name in numbers else row[name])
    columns: Columns = {name: np.array(found[name]) if name in numbers else found[name] for name in found}
    if not all((np.abs(columns[name]) <= _LARGEST).all() for name in numbers):
        raise ValueError("some numbers are not finite")
    return columns if len(columns[numbers[0]]) else {}
