"""Texts in an HDF5 file. Those of variable length are read here: on damaged ones libhdf5 hangs or takes gigabytes.

Such a text lies in a heap of the file. A data set or an attribute has its length, the heap's address and a number.
"""

from __future__ import annotations

import struct
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cmaxslam_fbp.io.hdf5.file import Hdf5Dataset, Hdf5Group, is_variable_text, open_hdf5, require_plausible

_REFERENCE = struct.Struct("<IQI")  # with addresses of eight bytes, which all libraries write
_HEAP, _HEAP_OBJECT = struct.Struct("<4s4xQ"), struct.Struct("<H6xQ")
_LARGEST_HEAP, _LARGEST_MESSAGE = 1 << 20, 1 << 12  # usually a page of texts; a few words of text


def read_text(dataset: Hdf5Dataset, path: Path) -> str:
    """Return the text of a data set that holds one."""
    if not is_variable_text(dataset.id.get_type()):
        require_plausible(path, dataset)
        return bytes(np.asarray(dataset[()]).reshape(-1)[0]).decode()
    place = dataset.id.get_offset()
    with path.open("rb") as file:
        file.seek(place if place is not None else path.stat().st_size)
        return _from_heap(file, file.read(_REFERENCE.size), dataset.file.userblock_size)


def read_attribute(thing: Hdf5Group | Hdf5Dataset, name: str, path: Path) -> str | None:
    """Return the text of an attribute; None where there is none, or it is no text."""
    if name not in thing.attrs:
        return None
    number = thing.attrs.get_id(name)
    if not is_variable_text(number.get_type()):
        return None if number.dtype.kind != "S" else bytes(np.asarray(thing.attrs[name]).reshape(-1)[0]).decode()
    with _Observed(path) as raw, open_hdf5(raw) as file:
        file[thing.name].attrs.get_id(name)
        # The attribute's message lies where the library has just read to find it.
        for start, end in list(raw.spans):
            raw.seek(start)
            if (data := _message_data(raw.read(end - start + _LARGEST_MESSAGE), name.encode() + b"\0")) is not None:
                return _from_heap(raw, data, file.userblock_size)
    return None


class _Observed(FileIO):
    """A file that knows from where to where it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.spans: list[tuple[int, int]] = []

    def readinto(self, buffer: Any) -> int | None:
        start = self.tell()
        count = super().readinto(buffer)
        self.spans.append((start, start + (count or 0)))
        return count


def _message_data(block: bytes, name: bytes) -> bytes | None:
    """Return the data of an attribute's message: after its version, the sizes of name, type and shape, and these."""
    at = -1
    while (at := block.find(name, at + 1)) >= 0:
        for version, before in ((1, 8), (2, 8), (3, 9)):
            if at >= before and block[at - before] == version:
                sizes = struct.unpack_from("<HHH", block, at - before + 2)
                padding = 7 if version == 1 else 0
                place = at + sum((size + padding) & ~padding for size in sizes)
                if sizes[0] == len(name) and place + _REFERENCE.size <= len(block):
                    return block[place : place + _REFERENCE.size]
    return None


def _from_heap(file: BinaryIO | FileIO, reference: bytes, base: int) -> str:
    """Return a text of the heap that a reference points to; addresses count from a base."""
    length, address, wanted = _REFERENCE.unpack(reference)
    if not length:
        return ""
    file.seek(base + address)
    signature, size = _HEAP.unpack(file.read(_HEAP.size))
    heap = file.read(min(size, _LARGEST_HEAP)) if signature == b"GCOL" else b""
    place = 0
    while place + _HEAP_OBJECT.size <= len(heap):
        number, size = _HEAP_OBJECT.unpack_from(heap, place)
        place += _HEAP_OBJECT.size
        if number == wanted and length <= size:
            return heap[place : place + length].decode()
        place += size + -size % 8
    raise ValueError("a text of it is damaged")
