"""Events in a MATLAB file: the columns `x`, `y`, `ts` and `pol`, as variables or as the fields of one structure.

Files of MATLAB 5 to 7.2, which hold at most 2 GB a variable: columns are read whole. Those of MATLAB 7.3 are HDF5.

They are read element by element: SciPy's reader crashes on damaged ones. An element is a tag of its kind and size, and
then its data. A variable is an element of elements, or such a one compressed: flags, shape and name, and then its
numbers, or the names of its fields and an element for each.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.from_arrays import events_from_arrays, require_columns, unit_of_times
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.bad_input import unpack
from cmaxslam_fbp.io.column_names import as_list, column_names, whole_numbers
from cmaxslam_fbp.io.recording import Recording

_EVENTS_PER_CHUNK = 500_000
_SIGNATURE = b"MATLAB 5.0 MAT-file"
_HEADER_BYTES, _HEAD_BYTES = 128, 4096  # of the file; of a variable, for its flags, shape and name
_MATRIX, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_STORED |= {16: "u1", 17: "u2", 18: "u4"}  # characters, in as many bytes
_NUMBERS = ("double", "single", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CLASSES = dict(enumerate(("cell", "struct", "object", "char", "sparse", *_NUMBERS), start=1))
_LOGICAL, _COMPLEX = 0x200, 0x800  # flags beside the class

Element = tuple[int, memoryview]  # its kind and its data


@dataclass(frozen=True)
class Variable:
    """A variable, or a field of a structure: its class in MATLAB and its shape; its values are read when asked for."""

    kind: str
    shape: tuple[int, ...]
    _data: memoryview
    _order: str
    _is_compressed: bool = False

    @property
    def size(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    def _elements(self) -> list[Element]:
        """Return what comes after flags, shape and name."""
        data = memoryview(unpack(zlib.decompressobj(), bytes(self._data)))[8:] if self._is_compressed else self._data
        return list(_elements(data, self._order))[3:]

    def values(self) -> npt.NDArray[Any]:
        """Return its numbers in its shape."""
        if self.kind not in (*_NUMBERS, "logical"):
            raise ValueError(f"a variable of the class {self.kind} is used as numbers; it must be a list of numbers")
        (stored, data), *_ = self._elements()
        if stored not in _STORED:
            raise ValueError(f"numbers of the kind {stored} are not known")
        numbers = np.frombuffer(data, f"{self._order}{_STORED[stored]}")
        if len(numbers) != self.size:
            raise ValueError(f"a variable of the shape {self.shape} has {len(numbers)} values")
        kind = "bool" if self.kind == "logical" else self.kind
        with np.errstate(invalid="ignore", over="ignore"):  # found below
            values = numbers.astype(kind)
        if not np.can_cast(numbers.dtype, kind) and (values != numbers).any():
            raise ValueError(f"a variable of the class {self.kind} has values that it cannot have")
        return values.reshape(self.shape, order="F")

    def text(self) -> str:
        """Return its characters."""
        (stored, data), *_ = self._elements()
        width = np.dtype(_STORED[stored]).itemsize if stored in _STORED else 1
        ending = {"<": "-le", ">": "-be"}[self._order]
        return bytes(data).decode({2: f"utf-16{ending}", 4: f"utf-32{ending}"}.get(width, "utf-8")).strip()

    def fields(self) -> dict[str, Variable]:
        """Return the fields of a structure; nothing where it is none, or an array of several."""
        if self.kind != "struct" or self.size != 1:
            return {}
        (_, length), (_, names), *parts = self._elements()
        (step,) = struct.unpack(f"{self._order}i", length)
        found = (bytes(names[at : at + step]).partition(b"\0")[0].decode() for at in range(0, len(names), step))
        return {name: _variable(data, self._order)[1] for name, (_, data) in zip(found, parts, strict=True) if data}


def read_variables(path: Path) -> dict[str, Variable]:
    """Return the variables of a file by their names; of a cut one those that are whole."""
    data = memoryview(path.read_bytes())
    order = "<" if bytes(data[126:128]) == b"IM" else ">"
    found = {}
    with suppress(_CutElementError):
        for kind, body in _elements(data[_HEADER_BYTES:], order):
            if kind in (_MATRIX, _COMPRESSED):
                name, variable = _variable(body, order, kind == _COMPRESSED)
                found[name] = variable
    return found


def _variable(data: memoryview, order: str, is_compressed: bool = False) -> tuple[str, Variable]:
    """Return the name of a variable, and itself."""
    head = memoryview(zlib.decompressobj().decompress(data, _HEAD_BYTES))[8:] if is_compressed else data
    (_, flags), (_, shape), (_, name) = islice(_elements(head, order), 3)
    (word,) = struct.unpack_from(f"{order}I", flags)
    kind = "logical" if word & _LOGICAL else _CLASSES.get(word & 0xFF, "unknown")
    sides = tuple(np.frombuffer(shape, f"{order}i4").tolist())
    if min(sides, default=0) < 0:
        raise ValueError(f"a variable of it claims the shape {sides}")
    return bytes(name).decode(), Variable("complex" if word & _COMPLEX else kind, sides, data, order, is_compressed)


class _CutElementError(ValueError):
    """An element claims more than there is."""


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """Yield the elements that follow each other; four bytes of data and less may lie in the tag."""
    place = 0
    while place + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        if kind >> 16:
            kind, size, start = kind & 0xFFFF, kind >> 16, place + 4
            end = place + 8
        else:
            start = place + 8
            end = start + size + (0 if kind == _COMPRESSED else -size % 8)
        if start + size > min(end, len(data)):
            raise _CutElementError("an element of it is cut")
        yield kind, data[start : start + size]
        place = end


class MatlabRecording(Recording):
    """A `.mat` file."""

    description = "a MATLAB file (.mat)"
    first_bytes = _SIGNATURE
    size_advice = "give it with --sensor-size WIDTHxHEIGHT, or as numbers 'width' and 'height' in it"

    def _examine(self) -> None:
        self._variables = read_variables(self.path)
        self._holder = self._find_columns()

    def _find_columns(self) -> str | None:
        """Return the structure whose fields are the columns, None where they are variables of their own."""
        if column_names(self._variables) is not None:
            return None
        candidates = [name for name, variable in self._variables.items() if column_names(variable.fields()) is not None]
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

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns, each (N,)."""
        found = self._variables if self._holder is None else self._variables[self._holder].fields()
        names = column_names(found) or {}
        columns = {column: as_list(found[name].values()) for column, name in names.items()}
        columns["t"] = whole_numbers(columns["t"])
        return columns

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name, class and number of elements of each variable."""
        return [(name, variable.kind, variable.size) for name, variable in self._variables.items()]

    def _own_sensor_size(self) -> SensorSize | None:
        if not self._variables.keys() >= {"width", "height"}:
            return None
        return SensorSize(*(int(self._variables[name].values().reshape(-1)[0]) for name in ("width", "height")))

    def _named_unit(self) -> str | None:
        return self._variables["time_unit"].text() if "time_unit" in self._variables else None

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
