"""One event per passage of an edge: where its middle was, instead of where it crossed the thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.sensor import SensorSize
from cmaxslam_fbp.nanoseconds import NS_PER_S

_REACH_NS = 1 << 32  # what stamps of 32 bits can express: four seconds
LONGEST_NS = _REACH_NS // 4  # of a run
_STEP_NS = 50_000_000  # after which the longest run is asked for again, and passages may be passed on

LongestRun = int | Callable[[int], int]


def edge_passages(
    chunks: Iterable[Events], size: SensorSize, longest_ns: LongestRun, most_s: float = np.inf
) -> Iterator[Events]:
    """Replace the run of events that an edge causes at a pixel by one event, halfway through the change.

    A run is what a pixel fires with one polarity, within `longest_ns` of its time: while an edge passes, its intensity
    rises (or falls) over one threshold `C` after the other. The run before has ended at some level `L`; this one has
    crossed `L + C ... L + n C`. The flank of the edge began between `L - C` and `L`, and ends between `L + n C` and `L
    + (n + 1) C`: its middle is at `L + n C / 2`, the level of the `n / 2`-th event. There, and not at the first event
    nor at all of them, an edge is found at the same place whichever way it moves; an estimate from all events lags
    behind the motion. A single event is half a threshold late by this rule, with no event before it to tell by how
    much, and may be noise; and the first run of a pixel that the stream has may begin anywhere on a flank, since the
    level before it is not known: it counts as a single event, `n = 1`. `passages_for` leaves these out.

    The polarity `p` of a passage gives way to the number `n` of its events. Events come ordered by time. The first and
    the last event of the stream are passed on, so that the passages cover the same time.

    Parameters
    ----------
    chunks : events ordered by time
    size : of the sensor
    longest_ns : time after which a run ends, or what returns it for a time of the stream; at most `LONGEST_NS`
    most_s : passages of two events or more that are wanted per second; where there are more than twice as many, only
        some of the pixels are looked at; which ones and when does not depend on how the stream is cut
    """
    passages = EdgePassages(size, longest_ns, most_s)
    for events in chunks:
        yield passages.add(events)
    yield passages.finish()


def passages_for(passages: Events, fewest: int, enough: float, most: float = np.inf) -> Events:
    """Return the passages to work on: of at least `fewest` events each, or all where fewer than `enough` are left.

    Of more than `most` one of two, four, eight ... is taken, spread over time and sensor; which ones does not depend on
    those around them.
    """
    from cmaxslam_fbp.events.passage_kernels import choose_passages

    columns = passages.t_ns, passages.x, passages.y, passages.p
    count = int(np.count_nonzero(passages.p >= fewest))
    if count < enough:
        count, fewest = len(passages), 0
    mask = 0
    while count > (mask + 1) * most:
        mask = 2 * mask + 1
    if not mask and count == len(passages):
        return passages
    chosen = np.empty(len(passages) + 1, np.int64)
    return passages[chosen[: choose_passages(*columns, fewest, np.uint64(mask), chosen)]]


class EdgePassages:
    """The runs of all pixels, and the passages that are known but not yet in order; see `edge_passages`."""

    def __init__(self, size: SensorSize, longest_ns: LongestRun, most_s: float = np.inf) -> None:
        from cmaxslam_fbp.events.passage_kernels import STAMPS

        pixels = size.width * size.height
        self._width, self._longest_ns = size.width, longest_ns
        self._stamps = np.zeros(pixels * STAMPS, np.uint32)
        self._states = np.zeros(pixels, np.uint8)
        self._bits = int(16 * pixels).bit_length()
        self._keys: list[IntArray] = []
        self._most_s, self._mask = most_s, np.uint64(0)
        self._base_ns = self._settled_ns = 0  # from which stamps count; before which nothing comes any more
        self._last: Events | None = None

    def add(self, events: Events) -> Events:
        """Add events; return the passages that no later event can change or precede."""
        if not len(events):
            return events
        parts, first = [], 0
        while first < len(events):
            next_ns = (int(events.t_ns[first]) // _STEP_NS + 1) * _STEP_NS
            last = int(np.searchsorted(events.t_ns, next_ns))
            parts.append(self._add(events[first:last]))
            first = last
        return parts[0] if len(parts) == 1 else Events.concatenate(parts)

    def _add(self, events: Events) -> Events:
        """Add events of one step, or of a part of one."""
        from cmaxslam_fbp.events.passage_kernels import add_events, choose_events

        start_ns, limit = int(events.t_ns[0]), self._longest_ns
        step_ns = start_ns // _STEP_NS * _STEP_NS
        longest_ns = limit if isinstance(limit, int) else limit(step_ns)
        if self._last is None:
            passages = _single(events[:1])
            self._base_ns, self._settled_ns = start_ns - LONGEST_NS, start_ns - longest_ns
        else:
            passages = self._settle(step_ns - longest_ns, longest_ns)
        self._last = _single(events[-1:])
        if self._mask:
            chosen = np.empty(len(events) + 1, np.int64)
            events = events[chosen[: choose_events(events.x, events.y, self._width, self._mask, chosen)]]
        keys = np.empty(len(events) + 1, np.int64)
        found = add_events(
            events.t_ns, events.x, events.y, events.p, self._width, longest_ns,
            self._base_ns, self._bits, self._stamps, self._states, keys,
        )  # fmt: skip
        self._keys.append(keys[:found])
        return passages

    def _settle(self, before_ns: int, longest_ns: int) -> Events:
        """Return the passages before a time if they are worth it, and choose the pixels to look at from now on.

        These are half as many where there are more passages than are wanted, or twice as many again. It happens between
        steps only, so that it does not depend on how the stream is cut; and rarely, since all pixels and all passages
        that wait for their order are looked at.
        """
        from cmaxslam_fbp.events.passage_kernels import forget_others

        passed_ns = before_ns - self._settled_ns
        if passed_ns <= longest_ns // 2:  # also where runs may last longer than before
            return Events.empty()
        passages = self._pass_on(before_ns)
        rate_s = int(np.count_nonzero(passages.p > 1)) / passed_ns * NS_PER_S
        if rate_s > 2 * self._most_s:
            self._mask = 2 * self._mask + np.uint64(1)
            forget_others(self._mask, self._states)
        elif self._mask and rate_s < self._most_s / 2:
            self._mask >>= np.uint64(1)
        return passages

    def finish(self) -> Events:
        """Return the passages that are left, and the last event."""
        if self._last is None:
            return Events.empty()
        return Events.concatenate([self._pass_on(None), self._last])

    def _pass_on(self, before_ns: int | None) -> Events:
        """Return the passages before a time, or all, in order; runs that began before it have ended."""
        from cmaxslam_fbp.events.passage_kernels import end_runs, move_base, read_keys, take_before

        since = _REACH_NS if before_ns is None else min(before_ns - self._base_ns, _REACH_NS)
        ended = np.empty(len(self._states), np.int64)
        count = end_runs(since, self._bits, self._stamps, self._states, ended)
        keys = np.concatenate([*self._keys, ended[:count]])
        due = np.empty_like(keys)
        count = take_before(since << self._bits, keys, due)
        ordered = due[:count]
        ordered.sort()
        passages = Events.room_for(count)
        read_keys(ordered, self._width, self._base_ns, self._bits, passages.t_ns, passages.x, passages.y, passages.p)
        self._keys = [keys[: len(keys) - count]]
        if before_ns is not None:
            self._settled_ns = before_ns
            if since > _REACH_NS // 2:  # keys and runs count from there on
                self._keys[0] -= since << self._bits
                move_base(since, self._states, self._stamps)
                self._base_ns = before_ns
        return passages


def _single(event: Events) -> Events:
    """Return an event as a passage."""
    return Events(event.t_ns, event.x, event.y, np.ones_like(event.p))
