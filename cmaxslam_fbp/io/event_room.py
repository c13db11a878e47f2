"""Columns that decoders put events into, one after another, however they came in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.events import Events

EVENTS_PER_CHUNK = 1 << 17


class EventRoom:
    """Room for a chunk of events; `fill` yields each chunk that got full, `take` what is there.

    A decoder is a compiled `decode(words, at, state, t_ns, x, y, p, count) -> (at, count)`: it reads words from `at`
    on, appends events from `count` on, keeps what it must remember in `state`, and stops at the end of either.
    """

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        size = EVENTS_PER_CHUNK
        self._columns = (
            np.empty(size, np.int64),
            np.empty(size, np.uint16),
            np.empty(size, np.uint16),
            np.empty(size, np.uint8),
        )
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def fill(self, decode: Any, words: npt.NDArray[Any], state: npt.NDArray[np.int64]) -> Iterator[Events]:
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
        end = self._count
        events = Events(t_ns[:end], x[:end], y[:end], p[:end])
        self._renew()
        return events
