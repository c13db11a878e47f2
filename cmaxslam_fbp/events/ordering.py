"""Put a stream of events into the order of their stamps, with bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S

MAX_JUMP_BACK_NS = NS_PER_S  # a stamp further back than this behind the newest one is an error, not disorder
_LONE_GAP_NS = 10 * NS_PER_S  # a first stamp that all others follow by more than this is that of an unset clock
_MOST_EVENTS_ALONE = 1000
_MOST_EVENTS_HELD = 50_000_000  # no sensor gives more in a second; they would fill the memory
_MANY_EVENTS, _LEAST_BACK_NS = 1_500_000, 20_000_000  # of more events within a second a fiftieth is waited for


@dataclass
class Defects:
    """What was wrong with the events of a stream that has been read, and was mended."""

    reordered: int = 0
    outside_sensor: int = 0
    alone_at_start: int = 0
    too_late: int = 0
    beyond_lens: int = 0
    notes: list[str] = field(default_factory=list)

    def describe(self) -> list[str]:
        """Return one line for each kind of defect that was found."""
        lines = list(self.notes)
        if self.alone_at_start:
            lines.append(
                f"{self.alone_at_start:,} events at the start were dropped: their stamp is far before all others"
            )
        if self.reordered:
            lines.append(f"{self.reordered:,} events came out of order and were sorted by their stamps")
        if self.too_late:
            lines.append(f"{self.too_late:,} events came too late to be put into order, and were dropped")
        if self.outside_sensor:
            lines.append(f"{self.outside_sensor:,} events lay outside the sensor and were dropped")
        if self.beyond_lens:
            lines.append(f"{self.beyond_lens:,} events lay beyond the field of the calibrated lens and were dropped")
        return lines


@dataclass(frozen=True)
class Piece:
    """Events as they came out of a file, words that name the place for an error message, and what to tell the user."""

    events: Events
    place: str
    note: str = ""


def restore_order(pieces: Iterable[Piece], defects: Defects, held_back_ns: int = MAX_JUMP_BACK_NS) -> Iterator[Events]:
    """Yield the events of all pieces ordered by stamp; count those that stood behind a later one.

    Stamps that go back by up to a second, within a piece or between pieces, are sorted (a stable sort: events of the
    same stamp keep their order). A larger jump back is a `RecordingError` that names the place. For that, one second of
    events is held back; with a smaller `held_back_ns`, events that come later than that are dropped. A first stamp that
    stands alone, far before the others, is dropped. What came before an error of the pieces is yielded before it is
    raised.
    """
    held: deque[Events] = deque()  # those that later ones may still precede
    count_held = 0
    newest_ns: int | None = None
    given_ns = -LARGEST_NS  # the newest stamp that has left
    try:
        for piece in _without_lone_stamp((piece for piece in pieces if len(piece.events)), defects):
            if piece.note and piece.note not in defects.notes:
                defects.notes.append(piece.note)
            events, newest_ns, jump = _sorted_within(piece, newest_ns, defects)
            late = int(np.searchsorted(events.t_ns, given_ns))
            defects.too_late += late
            events = events[late:]
            count_held += len(events)
            if count_held > _MOST_EVENTS_HELD:
                raise RecordingError(
                    f"more than {_MOST_EVENTS_HELD:,} events within a second at {piece.place}: no sensor gives so "
                    "many; check the unit of the stamps"
                )
            overlapping = []
            while held and len(events) and held[-1].t_ns[-1] > events.t_ns[0]:
                overlapping.append(held.pop())
            if overlapping:
                events = Events.concatenate([*reversed(overlapping), events])
                events = events[np.argsort(events.t_ns, kind="stable")]
            if len(events):
                held.append(events)
            if jump is not None:
                raise jump
            settled_ns = newest_ns - (held_back_ns if count_held <= _MANY_EVENTS else min(held_back_ns, _LEAST_BACK_NS))
            while held and held[0].t_ns[-1] <= settled_ns:
                count_held -= len(held[0])
                given_ns = int(held[0].t_ns[-1])
                yield held.popleft()
            if held_back_ns < MAX_JUMP_BACK_NS and held and held[0].t_ns[0] <= settled_ns:
                # Nobody should wait for the rest of the piece.
                count = int(np.searchsorted(held[0].t_ns, settled_ns, side="right"))
                early, held[0] = held[0][:count], held[0][count:]
                count_held -= count
                given_ns = int(early.t_ns[-1])
                yield early
    except RecordingError:
        yield from held
        raise
    yield from held


def _without_lone_stamp(pieces: Iterator[Piece], defects: Defects) -> Iterator[Piece]:
    """Drop the events of the first stamp where a few share it and all others come much later: 0, then Unix time."""
    waiting: list[Piece] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        t_ns = piece.events.t_ns
        first_ns = int(waiting[0].events.t_ns[0])
        others = t_ns != first_ns
        count += len(t_ns) - int(others.sum())
        if others.any() or count > _MOST_EVENTS_ALONE:
            if count <= _MOST_EVENTS_ALONE and int(t_ns[others].min()) - first_ns > _LONE_GAP_NS:
                defects.alone_at_start += count
                waiting = [replace(piece, events=piece.events[others])]
            break
    yield from chain(waiting, pieces)


def _sorted_within(piece: Piece, newest_ns: int | None, defects: Defects) -> tuple[Events, int, RecordingError | None]:
    """Sort one piece by stamp, having checked it against the newest stamp so far; return it and the newest now.

    Where time jumps back, what comes before that is returned, and the error to be raised after it.
    """
    events = piece.events
    t_ns = events.t_ns
    first_ns = int(t_ns[0])
    ordered = bool((t_ns[1:] >= t_ns[:-1]).all())
    low_ns, high_ns = (first_ns, int(t_ns[-1])) if ordered else (int(t_ns.min()), int(t_ns.max()))
    if low_ns < -LARGEST_NS or high_ns > LARGEST_NS:
        raise RecordingError(f"{piece.place} has stamps up to {max(-low_ns, high_ns)} ns, which no clock shows")
    if ordered and (newest_ns is None or first_ns >= newest_ns):
        return events, int(t_ns[-1]), None
    before = np.empty_like(t_ns)  # the newest stamp before each event
    before[0] = first_ns if newest_ns is None else newest_ns
    np.maximum.accumulate(t_ns[:-1], out=before[1:])
    np.maximum(before, before[0], out=before)
    back_ns = before - t_ns
    jumps = back_ns > MAX_JUMP_BACK_NS
    if jumps.any():
        place = int(np.argmax(jumps))
        jump = RecordingError(
            f"time jumps back by {back_ns[place] / NS_PER_S:.3f} s at event {place} of {piece.place} "
            f"(from {before[place]} to {t_ns[place]} ns): more than 1 s is not disorder; "
            "cut the recording there, or repair its stamps"
        )
        if place == 0:
            raise jump
        return *_sorted_within(replace(piece, events=events[:place]), newest_ns, defects)[:2], jump
    defects.reordered += int((back_ns > 0).sum())
    newest_now = max(int(before[-1]), int(t_ns[-1]))
    return (events if ordered else events[np.argsort(t_ns, kind="stable")]), newest_now, None
