"""From the binary words of a file, block by block, to events, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.ordering import Piece

_BLOCK_BYTES = 1 << 20
EVENTS_PER_CHUNK = 1 << 17

Block = tuple[npt.NDArray[Any], str]  # words, and what names their place


def read_words(path: Path, first_byte: int, dtype: npt.DTypeLike) -> Iterator[Block]:
    """Yield the words from a place of a file to its end, in blocks.

    A file that ends within a word is a `RecordingError`, after all whole words.
    """
    at, word = first_byte, np.dtype(dtype)
    with path.open("rb") as file:
        file.seek(at)
        while block := file.read(_BLOCK_BYTES - _BLOCK_BYTES % word.itemsize):
            whole = len(block) - len(block) % word.itemsize
            if whole:
                yield np.frombuffer(block, word, whole // word.itemsize), f"bytes {at} to {at + whole - 1} of {path}"
            at += whole
            if whole < len(block):
                raise RecordingError(
                    f"{path} ends within a word of {word.itemsize} bytes, at byte {at}: the file is cut"
                )


class EventRoom:
    """Room for a chunk of events; `fill` yields each chunk that got full, `take` what is there.

    A decoder is a compiled `decode(words, at, state, t_ns, x, y, p, count) -> (at, count)`: it reads words from `at`
    on, appends events from `count` on, keeps what it must remember in `state`, and stops at the end of either.
    """

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        events = Events.room_for(EVENTS_PER_CHUNK)
        self._columns, self._count = (events.t_ns, events.x, events.y, events.p), 0

    def __len__(self) -> int:
        return self._count

    def fill(self, decode: Any, words: npt.NDArray[Any], state: IntArray) -> Iterator[Events]:
        """Decode words; yield the events whenever the room is full."""
        at = 0
        while True:
            at, self._count = decode(words, at, state, *self._columns, self._count)
            if at == len(words):
                return
            yield self.take()

    def take(self) -> Events:
        """Return the events that are there, and make room for others."""
        t_ns, x, y, p = self._columns
        events = Events(t_ns, x, y, p)[: self._count]
        self._renew()
        return events


def decode_blocks(blocks: Iterable[Block], decode: Any, state: IntArray) -> Iterator[Piece]:
    """Yield the events of all blocks. Each is decoded before the next is asked for: it may look at the state."""
    room, place = EventRoom(), ""
    for words, place in blocks:
        for events in room.fill(decode, words, state):
            yield Piece(events, place)
    yield Piece(room.take(), place)
