"""A finished run, read back from its folder."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import CmaxSlamError, OutputError
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory

REPORT_DATA = "report_data.json"
_NEEDED = ("run.json", "trajectory.txt", "panorama.npy")


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
    velocities, windows : dict of str to list of str
        The columns of `angular_velocity.csv` and `windows.csv`; empty where there is no such file.
    reference : dict
        What `report_data.json` says of camera, ground truth and gyroscope; empty where there is no such file.
    """

    path: Path
    run: dict[str, Any]
    metrics: dict[str, Any] | None
    trajectory: RotationTrajectory
    panorama: npt.NDArray[np.float32]
    velocities: dict[str, list[str]]
    windows: dict[str, list[str]]
    reference: dict[str, Any]

    @staticmethod
    def read(path: Path) -> RunFiles:
        """Read a run folder; an `OutputError` says what is wrong with one that is not."""
        if not path.is_dir():
            raise OutputError(f"{path} is not a folder; give the folder of a run (the --out of cmaxslam-fbp run)")
        missing = [name for name in _NEEDED if not (path / name).is_file()]
        if missing:
            raise OutputError(f"{path} is not the folder of a run: {' and '.join(missing)} missing")
        try:
            return RunFiles(
                path=path,
                run=_read_json(path / "run.json"),
                metrics=_read_json(path / "metrics.json") or None,
                trajectory=read_trajectory(path / "trajectory.txt"),
                panorama=_read_map(path / "panorama.npy"),
                velocities=_read_columns(path / "angular_velocity.csv"),
                windows=_read_columns(path / "windows.csv"),
                reference=_read_json(path / REPORT_DATA),
            )
        except CmaxSlamError:
            raise
        except (OSError, ValueError, KeyError, EOFError, csv.Error) as error:
            raise OutputError(f"the run in {path} cannot be read: {' '.join(str(error).split())}") from error

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

    def seconds(self, column: list[str]) -> FloatArray:
        """Return stamps in seconds of the recording's clock as seconds from the first event."""
        return np.array([float(stamp) for stamp in column]) - self.start_ns / 1e9

    def field_of_view(self) -> FloatArray | None:
        """Return the sensor's border as unit directions (K, 3) in the camera frame, where it is known."""
        border = self.reference.get("field_of_view")
        return np.array(border, np.float64) if border else None


def _read_json(path: Path) -> dict[str, Any]:
    """Return the values of a JSON file; none where there is no file."""
    if not path.is_file():
        return {}
    values = json.loads(path.read_text())
    if not isinstance(values, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return values


def _read_map(path: Path) -> npt.NDArray[np.float32]:
    image = np.load(path, allow_pickle=False)
    if image.ndim != 2 or image.size == 0:
        raise ValueError(f"{path.name} is not an image")
    return np.asarray(image, np.float32)


def _read_columns(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table with a header; none where there is no file or no row."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
