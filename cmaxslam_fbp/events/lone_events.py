"""Lone events: where little moves most events are noise, and only those with neighbours are used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.sensor import SensorSize

_NEAR_NS = 10_000_000  # before and after an event: about the time in which a slow edge moves by a pixel
_NEVER_NS = -(2**62)

IsSlow = Callable[[IntArray], npt.NDArray[np.bool_]]


class LoneEvents:
    """Drops events that stand alone, while the image moves slowly.

    An edge that passes makes its pixels and those beside them fire, again and again; noise does not. An event has as
    many neighbours as pixels, of its own and the eight around it, fired with its polarity within 10 ms before it, and
    as many more within 10 ms after it. What is not slow is passed on as it is, and is nobody's neighbour.

    Parameters
    ----------
    size : of the sensor
    is_slow : tells it of stamps (N,), in order
    least : neighbours that a slow event must have; 0 keeps all

    Attributes
    ----------
    dropped : int
        How many events so far.
    """

    def __init__(self, size: SensorSize, is_slow: IsSlow, least: int) -> None:
        self._is_slow, self._least = is_slow, least
        # Stamps of the last event of each polarity and pixel; around the sensor lies a frame where nothing fires.
        self._before: IntArray = np.full((2, size.height + 2, size.width + 2), _NEVER_NS)
        self._after = self._before.copy()  # the next events, forgotten after each use
        self._held, self._counts = Events.empty(), np.empty(0, np.int64)
        self._since_ns = _NEVER_NS  # the slow motion's beginning
        self.dropped = 0

    def run(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the events that are left; also those that came just before an error of the stream."""
        failure, stream = None, iter(chunks)
        while True:
            try:
                chunk = next(stream)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            is_slow = self._is_slow(chunk.t_ns) if self._least and len(chunk) else np.zeros(len(chunk), bool)
            edges = [0, *(np.flatnonzero(np.diff(is_slow)) + 1).tolist(), len(chunk)]
            for first, end in itertools.pairwise(edges):
                part = chunk[first:end]
                if first < end and is_slow[first]:
                    yield from self._hold(part)
                else:
                    yield from self._release()
                    yield part
        yield from self._release()
        if failure is not None:
            raise failure

    def _hold(self, events: Events) -> Iterator[Events]:
        """Take in slow events; yield what is left of those all of whose neighbours are there."""
        if self._since_ns == _NEVER_NS:
            self._since_ns = int(events.t_ns[0])
        counts = np.zeros(len(events), np.int64)
        _count(events.t_ns, events.x, events.y, events.p, self._since_ns, self._before, counts)
        self._held = Events.concatenate([self._held, events])
        self._counts = np.concatenate([self._counts, counts])
        yield from self._judge(int(np.searchsorted(self._held.t_ns, int(events.t_ns[-1]) - _NEAR_NS)))

    def _release(self) -> Iterator[Events]:
        """Yield what is left of all that is held, since nothing slow follows it for now."""
        yield from self._judge(len(self._held))
        self._since_ns = _NEVER_NS

    def _judge(self, end: int) -> Iterator[Events]:
        """Let go of the first held events; yield those with enough neighbours."""
        if end == 0:
            return
        held, after = self._held, np.zeros(len(self._held), np.int64)
        _count(-held.t_ns[::-1], held.x[::-1], held.y[::-1], held.p[::-1], _NEVER_NS, self._after, after)
        _forget(held.x, held.y, held.p, self._after)
        kept = np.flatnonzero(self._counts[:end] + after[::-1][:end] >= self._least)
        self.dropped += end - len(kept)
        self._held, self._counts = held[end:], self._counts[end:]
        if len(kept):
            yield held[kept]


@compiled
def _count(t_ns: Any, x: Any, y: Any, p: Any, since_ns: int, last_ns: Any, counts: Any) -> None:
    """Add to `counts` how many of the nine pixels about each event have fired just before it, since a time."""
    for i in range(len(t_ns)):
        layer, row, column = np.int64(p[i] != 0), np.int64(y[i]) + 1, np.int64(x[i]) + 1
        earliest_ns = max(t_ns[i] - _NEAR_NS, since_ns)
        for beside in range(row - 1, row + 2):
            for pixel in range(column - 1, column + 2):
                counts[i] += last_ns[layer, beside, pixel] >= earliest_ns
        last_ns[layer, row, column] = t_ns[i]


@compiled
def _forget(x: Any, y: Any, p: Any, last_ns: Any) -> None:
    """Forget the stamps of the pixels of events."""
    for i in range(len(x)):
        last_ns[np.int64(p[i] != 0), np.int64(y[i]) + 1, np.int64(x[i]) + 1] = _NEVER_NS
