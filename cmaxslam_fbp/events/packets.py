"""Cut a stream of events into packets: by count, or around the times of a fixed rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.nanoseconds import NS_PER_S

LONGEST_SILENCE_NS = 3_000_000_000  # time without events after which nothing is said of the camera until they go on


@dataclass(frozen=True)
class Packet:
    """Events that one estimate is made of, and the time that the estimate is for."""

    events: Events
    t_ns: int

    @property
    def duration_s(self) -> float:
        """Time from the first event to the last one."""
        return int(self.events.t_ns[-1] - self.events.t_ns[0]) / NS_PER_S


def mean_time_ns(events: Events) -> int:
    """Return the mean stamp, rounded to a nanosecond: exact where a float64 of the stamps would not be."""
    first = int(events.t_ns[0])
    return first + round(float((events.t_ns - first).mean()))


def packets_by_count(chunks: Iterable[Events], count: int) -> Iterator[Packet]:
    """Yield consecutive packets of `count` events that do not overlap, each for its mean time.

    What remains at the end is a shorter packet if it has at least half as many events, and is left out otherwise.
    """
    buffer = _Buffer(chunks)
    first = 0
    while buffer.reach(first + count):
        events = buffer.slice(first, first + count)
        yield Packet(events, mean_time_ns(events))
        first += count
        buffer.forget(first)
    rest = buffer.slice(first, buffer.end)
    if 2 * len(rest) >= count:
        yield Packet(rest, mean_time_ns(rest))


def packets_at_rate(
    chunks: Iterable[Events],
    count: int,
    interval_ns: int,
    *,
    min_duration_ns: int = 0,
    max_duration_ns: Callable[[int], int] | int | None = None,
    min_count: Callable[[int], int] | int = 1,
) -> Iterator[Packet]:
    """Yield a packet every `interval_ns`, of the `count` events around that time: half before it, half after it.

    The times count from the first event. Packets overlap where events are few, and skip some where they are many. Those
    near the ends of the stream, where one half is missing, take their events from the other side. A stream shorter than
    the interval is one packet, for its mean time. A silence has packets up to `LONGEST_SILENCE_NS` after its start.

    Where events are many, `count` of them last so short that hardly anything moves: then the packet covers
    `min_duration_ns`, of whose events every n-th is taken so that there are at most `count`. Where they are few, a
    packet would last so long that the velocity changes: with `max_duration_ns` it is cut to the events of that time
    about its own, but not below `min_count` events. Both may depend on the time.
    """
    buffer = _Buffer(chunks)
    if not buffer.reach(1):
        return
    before = count // 2
    t_ns = int(buffer.slice(0, 1).t_ns[0])
    is_first = True
    while True:
        t_ns += interval_ns
        middle = buffer.index_at(t_ns)
        if middle is None:  # the stream ends before this time
            if is_first:
                events = buffer.slice(0, min(count, buffer.end))
                yield Packet(events, mean_time_ns(events))
            return
        is_first = False
        last_ns, next_ns = buffer.slice(max(middle - 1, 0), middle + 1).t_ns[[0, -1]].tolist()
        if t_ns - last_ns > LONGEST_SILENCE_NS and t_ns < next_ns:
            t_ns += (next_ns - t_ns - 1) // interval_ns * interval_ns  # the last time before the events go on
            continue
        first = max(0, middle - before)
        longest_ns = max_duration_ns(t_ns) if callable(max_duration_ns) else max_duration_ns
        fewest = min_count(t_ns) if callable(min_count) else min_count
        end = first + count
        if longest_ns is not None:  # no more is read than is needed
            after = buffer.index_at(t_ns + longest_ns // 2, end)
            if after is not None:
                end = min(end, max(after, max(middle - fewest // 2, 0) + fewest))
        if not buffer.reach(end):
            first = max(buffer.first, buffer.end - count)
        last = min(end, buffer.end)
        if min_duration_ns:
            after = buffer.index_at(t_ns + min_duration_ns // 2)
            last = max(last, buffer.end if after is None else after)
            first = min(first, buffer.index_at(t_ns - min_duration_ns // 2) or 0)
        buffer.forget(min(first, middle - 1))
        events = buffer.slice(first, last)
        if len(events) > count:
            events = events[np.arange(0, len(events), -(-len(events) // count))]
        yield Packet(events if longest_ns is None else _about(events, t_ns, longest_ns, fewest), t_ns)


def _about(events: Events, t_ns: int, duration_ns: int, min_count: int) -> Events:
    """Return the events within half a duration of a time, or the `min_count` ones next to it if those are more."""
    first, middle, last = np.searchsorted(events.t_ns, [t_ns - duration_ns // 2, t_ns, t_ns + duration_ns // 2])
    if last - first < min_count:
        first = min(max(middle - min_count // 2, 0), max(len(events) - min_count, 0))
        last = first + min_count
    return events[int(first) : int(last)]


class _Buffer:
    """The part of a stream that is still needed, addressed by the number of the event in the stream."""

    def __init__(self, chunks: Iterable[Events]) -> None:
        self._chunks = iter(chunks)
        self._events = Events.empty()
        self.first = 0  # the number of the first event that is still there

    @property
    def end(self) -> int:
        """The number behind the last event that has been read."""
        return self.first + len(self._events)

    def _read(self) -> bool:
        """Read at least one more event; False at the end of the stream."""
        for chunk in self._chunks:
            if len(chunk):
                self._events = Events.concatenate([self._events, chunk]) if len(self._events) else chunk
                return True
        return False

    def reach(self, end: int) -> bool:
        """Read until the event before `end` is there; False where the stream is shorter."""
        while self.end < end:
            if not self._read():
                return False
        return True

    def slice(self, first: int, last: int) -> Events:
        """Return the events of a range that has been read."""
        return self._events[first - self.first : last - self.first]

    def index_at(self, t_ns: int, enough: int | None = None) -> int | None:
        """Return the number of the first event at or after a time, or None where the stream ends before it.

        Where that is `enough` or more, the number may be smaller, but not below `enough`: no more is read for it.
        """
        while not len(self._events) or self._events.t_ns[-1] < t_ns:
            if enough is not None and self.end >= enough:
                return self.end
            if not self._read():
                return None
        return self.first + int(np.searchsorted(self._events.t_ns, t_ns, side="left"))

    def forget(self, first: int) -> None:
        """Let go of the events before `first`."""
        if first > self.first:
            self._events = self._events[first - self.first :]
            self.first = first
