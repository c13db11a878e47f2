"""A file of binary words of one size, as a stream of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError

_BLOCK_BYTES = 1 << 20


def read_words(
    path: Path, first_byte: int, dtype: npt.DTypeLike, block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[npt.NDArray[Any], str]]:
    """Yield the words from a place of a file to its end, in blocks, each with words that name its place.

    A file that ends within a word is a `RecordingError`, after all whole words.
    """
    with path.open("rb") as file:
        file.seek(first_byte)
        yield from words_of(file, path, np.dtype(dtype), block_bytes)


def words_of(
    file: BinaryIO, source: object, dtype: np.dtype[Any], block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[npt.NDArray[Any], str]]:
    """Yield the words of an open file, as `read_words` does."""
    at = file.tell()
    block_bytes -= block_bytes % dtype.itemsize
    while block := file.read(block_bytes):
        whole = len(block) - len(block) % dtype.itemsize
        if whole:
            yield np.frombuffer(block, dtype, whole // dtype.itemsize), f"bytes {at} to {at + whole - 1} of {source}"
        at += whole
        if whole < len(block):
            raise RecordingError(
                f"{source} ends within a word of {dtype.itemsize} bytes, at byte {at}: the file is cut"
            )
