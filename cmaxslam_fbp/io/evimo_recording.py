"""A recording of EVIMO2: a folder with `dataset_events_t.npy`, `_xy.npy` and `_p.npy`, and `dataset_info.npz`.

Times are float32 seconds, so that stamps of late events share values: at 16 s they are 2 us apart.
"""

from __future__ import annotations

import math
import pickle
import zipfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.from_arrays import events_from_arrays
from cmaxslam_fbp.events.ordering import MAX_JUMP_BACK_NS, Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.bad_input import one_line_errors, open_member
from cmaxslam_fbp.io.lens_names import distortion_model
from cmaxslam_fbp.io.npz_recording import read_array, read_header
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import RotationTrajectory

_EVENTS_PER_CHUNK = 500_000
_INFO = "dataset_info.npz"


class EvimoRecording(Recording):
    """A folder of `.npy` files, which are mapped into memory and never read whole."""

    description = "an EVIMO2 folder (dataset_events_t.npy, ...)"
    folder_file = "dataset_events_t.npy"

    def _examine(self) -> None:
        self._t, self._xy, self._p = (_map(self.path / f"dataset_events_{name}.npy") for name in ("t", "xy", "p"))
        shapes = {name: array.shape for name, array in (("t", self._t), ("xy", self._xy), ("p", self._p))}
        self._count = len(self._t) if self._t.ndim else 0
        if not (self._t.size == self._p.size == self._count and self._xy.shape == (self._count, 2)):
            raise RecordingError(f"{self.path}: the events have the shapes {shapes}, which do not fit together")

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the files of the events and of the poses."""
        rows = [
            (f"dataset_events_{name}.npy", str(a.dtype), self._count) for name, a in (("t", self._t), ("p", self._p))
        ]
        return rows if self._info is None else [*rows, (_INFO, "poses, calibration", 1)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        times = self._t.reshape(-1)
        start = 0
        if skip_before_ns is not None:
            start = int(np.searchsorted(times, (skip_before_ns - MAX_JUMP_BACK_NS) / NS_PER_S))
        for first in range(start, self._count, _EVENTS_PER_CHUNK):
            rows = slice(first, first + _EVENTS_PER_CHUNK)
            t, xy, p = np.asarray(times[rows]), self._xy[rows], np.asarray(self._p.reshape(-1)[rows])
            with np.errstate(invalid="ignore"):  # what is not a number is found below
                seconds = t.astype(np.float64) if t.dtype.kind == "f" else t
            x, y = np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])
            events = events_from_arrays(seconds, x, y, p, time_unit="s", source=str(self.path), first=first)
            yield Piece(events, f"the events {first} to {first + len(t) - 1} of {self.path}")

    @cached_property
    def _info(self) -> dict[str, Any] | None:
        """The arrays `K` and `D` and the dictionary `meta` of the file beside the events; None where there is none."""
        file = self.path / _INFO
        if not file.is_file():
            return None
        with one_line_errors(file), zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            found = {name: read_array(archive, f"{name}.npy") for name in ("K", "D") if f"{name}.npy" in names}
            if "meta.npy" in names:
                with open_member(archive, "meta.npy") as member:
                    found["meta"] = _load_dictionary(member)
            return found

    def _meta(self) -> dict[str, Any]:
        meta = (self._info or {}).get("meta")
        return meta if isinstance(meta, dict) else {}

    def _own_sensor_size(self) -> SensorSize | None:
        sensor = self._meta().get("meta", {})
        return SensorSize(int(sensor["res_x"]), int(sensor["res_y"])) if {"res_x", "res_y"} <= set(sensor) else None

    def _own_calibration(self) -> Camera | None:
        info = self._info or {}
        if "K" not in info:
            return None
        matrix, coefficients = np.asarray(info["K"]), np.asarray(info.get("D", ()))
        if np.iscomplexobj(matrix) or np.iscomplexobj(coefficients):
            raise ValueError("K and D are complex numbers")
        K = matrix.astype(float).reshape(3, 3)
        distortion = tuple(coefficients.astype(float).reshape(-1).tolist())
        model = distortion_model(str(self._meta().get("meta", {}).get("dist_model", "radtan")), distortion)
        return Camera(*self.calibrated_size, K[0, 0], K[1, 1], K[0, 2], K[1, 2], distortion, model)

    def _poses(self) -> RotationTrajectory | None:
        """Return the camera in the world of the motion capture."""
        rows: dict[int, list[float]] = {}
        for sample in self._meta().get("full_trajectory", ()):
            pose = sample["cam"]["pos"]
            place, turn = pose["t"], pose["q"]
            values = [place[axis] for axis in "xyz"] + [turn[axis] for axis in "xyzw"]
            rows.setdefault(round(float(sample["ts"]) * NS_PER_S), [float(value) for value in values])
        if len(rows) < 2:
            return None
        table = np.array([rows[t_ns] for t_ns in sorted(rows)])
        return RotationTrajectory(np.array(sorted(rows), np.int64), table[:, 3:], table[:, :3])


def _map(file: Path) -> npt.NDArray[Any]:
    """Map an array of numbers into memory."""
    with file.open("rb") as stream:
        shape, dtype = read_header(stream)
        stored = file.stat().st_size - stream.tell()
    if dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize > stored:
        raise RecordingError(
            f"{file} claims {dtype} of shape {shape} in {stored:,} bytes: it is cut or no column of events"
        )
    return np.lib.format.open_memmap(file, mode="r")


# What NumPy's own pickles name: taken from one, since the modules have moved between versions.
_PARTS = {"_reconstruct": np.zeros(1).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain values and arrays of NumPy, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few things that an array is made of."""
        if name in ("_reconstruct", "scalar") and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return _PARTS[name]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise ValueError(f"it has a {module}.{name}, which is not read")


def _load_dictionary(file: IO[bytes]) -> Any:
    """Return the one value of an array of objects."""
    _, dtype = read_header(file)
    if dtype != np.dtype(object):
        return None
    array = _PlainUnpickler(file).load()
    return array.item() if isinstance(array, np.ndarray) and array.size == 1 else None
