"""The few parts of FlatBuffers that AEDAT 4 needs, read with a check of every place and written with NumPy.

A buffer starts with its size, the place of its root table and four letters. A table starts with the distance back to
its vtable, which has the places of its fields; other places are distances ahead. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


class Table:
    """A table in a buffer; a place outside the buffer is a `ValueError`, a field that is not there None."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._place = place
        vtable = place - _number(data, "<i", place)
        length = _number(data, "<H", vtable)
        self._fields = struct.unpack(
            f"<{max(length - 4, 0) // 2}H", _part(data, vtable + 4, max(length - 4, 0) // 2 * 2)
        )

    @classmethod
    def root(cls, data: bytes, letters: bytes) -> Table:
        """Return the root table of a buffer that starts with its size."""
        if data[8:12] != letters:
            raise ValueError(f"it has the name {data[8:12]!r} where {letters!r} is expected")
        return cls(data, 4 + _number(data, "<I", 4))

    def _at(self, field: int) -> int | None:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else None

    def number(self, field: int, form: str, default: float = 0) -> Any:
        """Return a number, as `struct` reads it."""
        at = self._at(field)
        return default if at is None else _number(self._data, form, at)

    def _vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        """Return where the items of a vector begin, and how many there are."""
        at = self._at(field)
        if at is None:
            return 0, 0
        at += _number(self._data, "<I", at)
        count = _number(self._data, "<I", at)
        _part(self._data, at + 4, count * item_bytes)
        return at + 4, count

    def array(self, field: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a vector of structs or numbers."""
        dtype = np.dtype(dtype)
        start, count = self._vector(field, dtype.itemsize)
        return np.frombuffer(_part(self._data, start, count * dtype.itemsize), dtype)  # a copy, which is aligned

    def text(self, field: int) -> str:
        """Return a string."""
        return self.array(field, "u1").tobytes().decode("utf-8", "replace")

    def tables(self, field: int) -> list[Table]:
        """Return a vector of tables."""
        start, count = self._vector(field, 4)
        places = [start + 4 * i for i in range(count)]
        return [Table(self._data, at + _number(self._data, "<I", at)) for at in places]


def _part(data: bytes, start: int, length: int) -> bytes:
    if start < 0 or length < 0 or start + length > len(data):
        raise ValueError(f"its {len(data)} bytes claim to have {length} more from byte {start} on")
    return data[start : start + length]


def _number(data: bytes, form: str, at: int) -> Any:
    return struct.unpack(form, _part(data, at, struct.calcsize(form)))[0]


def buffer_of_structs(letters: bytes, records: npt.NDArray[Any]) -> bytes:
    """Return a buffer whose root table has one field: a vector of structs of up to eight-byte numbers."""
    items = records.tobytes()
    return _front(letters, len(records), len(items)) + items


def buffer_of_tables(letters: bytes, fields: Mapping[str, str], rows: Mapping[str, Any]) -> bytes:
    """Return a buffer whose root table has one field: a vector of tables, all with the same fields, in their order."""
    count = len(np.asarray(next(iter(rows.values()))))
    table = np.dtype([("vtable", "<i4"), *((name, np.dtype(kind)) for name, kind in fields.items())])
    offsets = [table.fields[name][1] for name in fields]  # type: ignore[index]
    vtable = struct.pack(f"<{2 + len(offsets)}H", 4 + 2 * len(offsets), table.itemsize, *offsets)
    vtable_at = 32 + 4 * count
    # Tables begin four bytes behind a multiple of eight: eight-byte numbers right behind their start are aligned.
    first = vtable_at + len(vtable)
    first += (4 - first) % 8
    stride = table.itemsize + -table.itemsize % 8
    padded = np.dtype([*table.descr, ("padding", f"V{stride - table.itemsize}")]) if stride > table.itemsize else table
    records: npt.NDArray[Any] = np.zeros(count, padded)
    places = first + stride * np.arange(count)
    records["vtable"] = places - vtable_at
    for name in fields:
        records[name] = rows[name]
    items = (places - (32 + 4 * np.arange(count))).astype("<u4").tobytes()
    items += vtable.ljust(first - vtable_at, b"\0") + records.tobytes()
    return _front(letters, count, len(items)) + items


def _front(letters: bytes, count: int, length: int) -> bytes:
    """Return the 32 bytes before the items of a vector in the only field of a root table."""
    vtable = struct.pack("<3H2x", 6, 8, 4)
    return struct.pack("<II4s8siII", 28 + length, 16, letters, vtable, 8, 4, count)
