"""Reads a stream in a thread of its own, so that its sender never waits for the work on it."""

from __future__ import annotations

import os
import select
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.live.thinning import Thinning
from cmaxslam_fbp.io.raw_recording import RawDecoder, RawFormat
from cmaxslam_fbp.nanoseconds import NS_PER_S

_BLOCK_BYTES = 1 << 20
_POLL_S = 0.1
_BATCH_S, _BATCH_EVENTS = 0.02, 1 << 17  # events are handed on when they have waited so long, or are so many
_AHEAD_S = 0.2  # a stream whose stamps run this far ahead of the clock is no camera: it can wait


@dataclass(frozen=True)
class Latency:
    """Seconds from the arrival of events to the pose that includes them and does not change any more."""

    median_s: float
    percentile_95_s: float
    largest_s: float


class Arrivals:
    """Stamps and times of arrival of what waits for its pose, and the latencies of what has it.

    `add` and `settle` may be called from two threads.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._latencies_s = array("f")

    def add(self, newest_ns: int, now_s: float) -> None:
        """Note that events up to a stamp have arrived."""
        self._waiting.append((newest_ns, now_s))

    def settle(self, t_ns: int, now_s: float) -> None:
        """Note that the poses before a time are known."""
        while self._waiting and self._waiting[0][0] < t_ns:
            self._latencies_s.append(now_s - self._waiting.popleft()[1])

    def latency(self) -> Latency | None:
        """Return the latencies so far; None where no pose is known."""
        if not self._latencies_s:
            return None
        median_s, late_s, largest_s = np.quantile(np.array(self._latencies_s), [0.5, 0.95, 1.0]).tolist()
        return Latency(median_s, late_s, largest_s)


@dataclass(frozen=True)
class LiveFigures:
    """Of a stream so far: the latency of its poses, and what was read and left out of it."""

    latency: Latency | None
    events_read: int
    events_left_out: int
    largest_step: int
    decisions: list[tuple[int, int]]


class LiveReader:
    """Decodes and thins what arrives, and hands it on in batches.

    A stream that comes at the pace of its stamps is never kept waiting: where the work is behind, it is thinned. One
    that comes faster than that, a recording that is copied into the pipe, waits.

    Parameters
    ----------
    descriptor : of the open file
    rest : bytes that were read from it already
    form : what the header says of the words
    clock : seconds
    """

    def __init__(
        self, descriptor: int, rest: bytes, form: RawFormat, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._descriptor, self._rest, self._form, self.clock = descriptor, rest, form, clock
        self.arrivals, self.thinning = Arrivals(), Thinning()
        self._ends_within_word = False
        self._decoder = RawDecoder(form)
        self._batches: deque[tuple[Events, float]] = deque()
        self._waiting = 0  # events in the batches
        self._changed = threading.Condition()
        self._first: tuple[int, float] | None = None  # stamp and arrival
        self._ended = self._stopped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="live reader", daemon=True)

    def settle(self, t_ns: int) -> None:
        """Note that the poses before a time are known now."""
        self.arrivals.settle(t_ns, self.clock())

    def figures(self) -> LiveFigures:
        """Return how it went so far."""
        thinning = self.thinning
        return LiveFigures(
            self.arrivals.latency(), thinning.read, thinning.dropped, thinning.largest_step, list(thinning.decisions)
        )

    def describe(self) -> list[str]:
        """Return what to tell the user, a line each."""
        cut = "the stream ended within an event: its sender was stopped there" if self._ends_within_word else ""
        return [*filter(None, [self._decoder.note, cut]), *self.thinning.describe()]

    def stop(self) -> None:
        """End the stream here; safe to be called by the handler of a signal."""
        self._stopped = True

    def join(self) -> None:
        """Wait until nothing is read any more."""
        if self._thread.is_alive():
            self._thread.join()

    def batches(self) -> Iterator[Events]:
        """Yield the events in the order of their arrival, until the stream ends or is stopped."""
        self._thread.start()
        while True:
            with self._changed:
                while not self._ended and not self._stopped and not self._is_due():
                    self._changed.wait(_BATCH_S if self._batches else _POLL_S)
                taken: list[Events] = []
                while self._batches and sum(map(len, taken)) < _BATCH_EVENTS:
                    taken.append(self._batches.popleft()[0])
                self._waiting -= sum(map(len, taken))
                self._changed.notify_all()
            if taken:
                yield Events.concatenate(taken)
            elif self._stopped or self._ended:
                if self._error is not None:
                    raise self._error
                return

    def _is_due(self) -> bool:
        return self._waiting >= _BATCH_EVENTS or self._oldest_s(self.clock()) >= _BATCH_S

    def _oldest_s(self, now_s: float) -> float:
        """Return for how long the oldest events wait that have not been handed on."""
        return now_s - self._batches[0][1] if self._batches else 0.0

    def _work(self) -> None:
        try:
            rest = self._take(self._rest)
            while not self._stopped:
                if not select.select([self._descriptor], [], [], _POLL_S)[0]:
                    continue
                block = os.read(self._descriptor, _BLOCK_BYTES)
                if not block:
                    break
                rest = self._take(rest + block)
            self._ends_within_word = bool(rest)
        except BaseException as error:  # handed to the thread that reads the batches
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, data: bytes) -> bytes:
        """Decode the whole words of some bytes; return what is left."""
        now_s, dtype = self.clock(), self._form.dtype
        count = len(data) // dtype.itemsize
        if count:
            for events in self._decoder.decode(np.frombuffer(data, dtype, count)):
                self._add(events, now_s)
            self._add(self._decoder.rest(), now_s)
        return data[count * dtype.itemsize :]

    def _add(self, events: Events, now_s: float) -> None:
        if not len(events):
            return
        with self._changed:
            newest_ns = int(events.t_ns[-1])
            if self._first is None:
                self._first = newest_ns, now_s
            ahead_s = (newest_ns - self._first[0]) / NS_PER_S - (now_s - self._first[1])
            if ahead_s > _AHEAD_S:
                while self._waiting >= 2 * _BATCH_EVENTS and not self._stopped:
                    self._changed.wait(_POLL_S)
                now_s, oldest_s = self.clock(), 0.0
            else:
                oldest_s = self._oldest_s(now_s)
            kept = self.thinning.thin(events, now_s, oldest_s, self._waiting)
            if len(kept):
                # A copy: decoders have room for many more events than a stream gives at once.
                self._batches.append((kept[np.arange(len(kept))], now_s))
                self._waiting += len(kept)
                self._changed.notify_all()
        self.arrivals.add(newest_ns, now_s)
