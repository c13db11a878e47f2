"""Events in a MATLAB file: the columns `x`, `y`, `ts` and `pol`, as variables or as the fields of one structure.

Files of MATLAB 5 to 7.2, which hold at most 2 GB a variable: columns are read whole. Those of MATLAB 7.3 are HDF5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.from_arrays import events_from_arrays, require_columns, unit_of_times
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.bad_input import largest_plausible_size
from cmaxslam_fbp.io.column_names import as_list, column_names, whole_numbers
from cmaxslam_fbp.io.recording import Recording

_SIGNATURE = b"MATLAB 5.0 MAT-file"
_EVENTS_PER_CHUNK = 500_000
_COMPRESSED, _MATRIX = 15, 14
_KINDS = {*range(1, 8), 9, 12, 13, 14, 15, 16, 17, 18}  # of elements
_DEEPEST = 8

Columns = dict[str, npt.NDArray[Any]]


class MatlabRecording(Recording):
    """A `.mat` file."""

    description: ClassVar[str] = "a MATLAB file (.mat)"
    endings: ClassVar[tuple[str, ...]] = (".mat",)
    size_advice: ClassVar[str] = "give it with --sensor-size WIDTHxHEIGHT, or as numbers 'width' and 'height' in it"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell a file by how it starts, whatever its name."""
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE

    def __init__(self, path: Path, options: RecordingConfig | None = None) -> None:
        super().__init__(path, options)
        from scipy.io import whosmat

        _require_sound(path)
        self._variables = {str(name): (tuple(shape), str(kind)) for name, shape, kind in whosmat(path)}
        self._holder = self._find_columns()

    def _find_columns(self) -> str | None:
        """Return the structure whose fields are the columns, None where they are variables of their own."""
        if column_names(self._variables) is not None:
            return None
        structures = [name for name, (_, kind) in self._variables.items() if kind == "struct"]
        candidates = [name for name in structures if column_names(self._fields(name)) is not None]
        if not candidates:
            raise RecordingError(
                f"{self.path} has no events: none of its variables ({', '.join(self._variables)[:120] or 'none'}) are "
                "the columns x, y, ts and pol, nor a structure of them (or it is cut)"
            )
        if len(candidates) > 1:
            raise RecordingError(
                f"{self.path} has several structures of events: {', '.join(candidates)[:120]}; save one of them alone"
            )
        return candidates[0]

    def _load(self, *names: str) -> dict[str, Any]:
        """Return variables; those that claim more than the file can hold are an error."""
        from scipy.io import loadmat

        limit = largest_plausible_size(self.path.stat().st_size)
        for name in names:
            shape, _ = self._variables[name]
            if np.prod(shape, dtype=float) > limit:
                raise RecordingError(f"{self.path}: the variable {name} claims the shape {shape}; the file is damaged")
        return dict(loadmat(self.path, variable_names=list(names)))

    def _fields(self, name: str) -> Columns:
        """Return the fields of a structure, of which there must be one; nothing where there are several."""
        structure = self._load(name).get(name)
        if structure is None or structure.size != 1 or structure.dtype.names is None:
            return {}
        record = structure.reshape(-1)[0]
        return {field: np.asarray(record[field]) for field in structure.dtype.names}

    @cached_property
    def _columns(self) -> Columns:
        """The columns, each (N,)."""
        if self._holder is None:
            names = column_names(self._variables) or {}
            found = self._load(*names.values())
        else:
            found = self._fields(self._holder)
            names = column_names(found) or {}
        columns = {column: as_list(np.asarray(found[name])) for column, name in names.items()}
        columns["t"] = whole_numbers(columns["t"])
        return columns

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name, class and number of elements of each variable."""
        return [(name, kind, int(np.prod(shape))) for name, (shape, kind) in self._variables.items()]

    def _own_sensor_size(self) -> SensorSize | None:
        if not self._variables.keys() >= {"width", "height"}:
            return None
        found = self._load("width", "height")
        return SensorSize(*(int(np.asarray(found[name]).reshape(-1)[0]) for name in ("width", "height")))

    def _named_unit(self) -> str | None:
        if "time_unit" not in self._variables:
            return None
        return "".join(str(word) for word in np.asarray(self._load("time_unit")["time_unit"]).reshape(-1)).strip()

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        columns, source = self._columns, str(self.path)
        count = require_columns({name: (column.shape, column.dtype) for name, column in columns.items()}, source)
        unit, note = self._named_unit(), ""
        if unit is None:
            unit, note = unit_of_times(columns["t"], source)
        for first in range(0, count, _EVENTS_PER_CHUNK):
            t, x, y, p = (column[first : first + _EVENTS_PER_CHUNK] for column in columns.values())
            events = events_from_arrays(t, x, y, p, time_unit=unit, source=source, first=first)
            yield Piece(events, f"the events {first} to {first + len(t) - 1} of {source}", note)


def _require_sound(path: Path) -> None:
    """Refuse a file whose elements do not lie within each other: SciPy reads beyond the end of its memory there."""
    data = path.read_bytes()
    order = "<" if data[126:128] == b"IM" else ">"
    place = 128
    while place + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        body = data[place + 8 : place + 8 + size]
        if len(body) != size:
            break  # a cut file: what comes before it can be read
        if kind == _COMPRESSED:
            unpacked = zlib.decompressobj().decompress(body, largest_plausible_size(size))
            _require_nested(unpacked, order, path, 0)
        else:
            _require_nested(data[place : place + 8 + size], order, path, 0)
        place += 8 + size


def _require_nested(data: bytes, order: str, path: Path, depth: int) -> None:
    place = 0
    while place < len(data):
        if place + 8 > len(data) or depth > _DEEPEST:
            raise RecordingError(f"{path} cannot be read: an element of it is cut; it may be cut or damaged")
        kind, size = struct.unpack_from(f"{order}II", data, place)
        is_small = kind >> 16
        kind, size = (kind & 0xFFFF, kind >> 16) if is_small else (kind, size)
        end = place + 8 if is_small else place + 8 + size
        if kind not in _KINDS or end > len(data) or (is_small and size > 4):
            raise RecordingError(f"{path} cannot be read: an element of it is damaged; it may be cut or damaged")
        if kind == _MATRIX:
            _require_nested(data[place + 8 : end], order, path, depth + 1)
        place = end if is_small else place + 8 + size + (-size) % 8
