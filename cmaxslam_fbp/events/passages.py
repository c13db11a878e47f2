"""One event per passage of an edge: where its middle was, instead of where it crossed the thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.sensor import SensorSize

Stamps = npt.NDArray[np.int64]


def edge_passages(chunks: Iterable[Events], size: SensorSize, longest_ns: int, fewest: int) -> Iterator[Events]:
    """Replace the run of events that an edge causes at a pixel by one event, halfway through the change.

    A run is what a pixel fires with one polarity, within `longest_ns`: while an edge passes, its intensity rises (or
    falls) over one threshold `C` after the other. The run before has ended at some level `L`; this one has crossed
    `L + C ... L + n C`. The flank of the edge began between `L - C` and `L`, and ends between `L + n C` and
    `L + (n + 1) C`: its middle is at `L + n C / 2`, the level of the `n / 2`-th event. There, and not at the first
    event nor at all of them, an edge is found at the same place whichever way it moves; an estimate from all events
    lags behind the motion. A single event is half a threshold late by this rule, with no event before it to tell by
    how much: it takes runs of `fewest = 2` events to be rid of these, and of most noise.

    Events come ordered by time. The first and the last event of the stream are passed on as they are, so that the
    passages cover the same time.

    Parameters
    ----------
    chunks : events ordered by time
    size : of the sensor
    longest_ns : time after which a run ends
    fewest : number of events that a run must have
    """
    passages = _Passages(size, longest_ns, fewest)
    first: Events | None = None
    last = Events.empty()
    for events in chunks:
        if not len(events):
            continue
        if first is None:
            first = events[:1]
            yield first
        last = events[-1:]
        yield passages.add(events)
    if first is not None:
        yield passages.rest()
        yield last


class _Passages:
    """The runs of all pixels, and the passages that are known but not yet in order."""

    def __init__(self, size: SensorSize, longest_ns: int, fewest: int) -> None:
        from cmaxslam_fbp.events.passage_kernels import LONGEST_RUN

        pixels = size.width * size.height
        self._width, self._longest_ns, self._fewest = size.width, longest_ns, fewest
        self._times_ns: Stamps = np.empty(pixels * LONGEST_RUN, np.int64)
        self._counts = np.zeros(pixels, np.uint8)
        self._polarities = np.zeros(pixels, np.uint8)
        self._known_ns: Stamps = np.empty(0, np.int64)
        self._known_codes: Stamps = np.empty(0, np.int64)

    def add(self, events: Events) -> Events:
        """Add events; return the passages that no later event can change or precede."""
        from cmaxslam_fbp.events.passage_kernels import add_events

        room = len(events)
        stamps, codes = np.empty(room, np.int64), np.empty(room, np.int64)
        found = add_events(
            events.t_ns, events.x, events.y, events.p, self._width, self._longest_ns, self._fewest,
            self._times_ns, self._counts, self._polarities, stamps, codes,
        )  # fmt: skip
        return self._pass_on(stamps[:found], codes[:found], int(events.t_ns[-1]) - self._longest_ns)

    def rest(self) -> Events:
        """Return the passages that are left at the end."""
        none = np.empty(0, np.int64)
        return self._pass_on(none, none, None)

    def _pass_on(self, stamps: Stamps, codes: Stamps, before_ns: int | None) -> Events:
        """Return the passages before a time, or all, in order; runs that began before it have ended."""
        from cmaxslam_fbp.events.passage_kernels import end_runs

        room = int(np.count_nonzero(self._counts))
        ended_ns, ended_codes = np.empty(room, np.int64), np.empty(room, np.int64)
        limit_ns = np.iinfo(np.int64).max if before_ns is None else before_ns
        ended = end_runs(
            limit_ns, self._fewest, self._times_ns, self._counts, self._polarities, ended_ns, ended_codes
        )  # fmt: skip
        all_ns = np.concatenate([self._known_ns, stamps, ended_ns[:ended]])
        all_codes = np.concatenate([self._known_codes, codes, ended_codes[:ended]])
        order = np.argsort(all_ns, kind="stable")
        all_ns, all_codes = all_ns[order], all_codes[order]
        count = int(np.searchsorted(all_ns, limit_ns))
        self._known_ns, self._known_codes = all_ns[count:], all_codes[count:]
        pixels = all_codes[:count] >> 1
        return Events(
            all_ns[:count],
            (pixels % self._width).astype(np.uint16),
            (pixels // self._width).astype(np.uint16),
            (all_codes[:count] & 1).astype(np.uint8),
        )
