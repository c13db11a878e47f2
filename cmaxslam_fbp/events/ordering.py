"""Put a stream of events into the order of their stamps, with bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.nanoseconds import NS_PER_S

MAX_JUMP_BACK_NS = NS_PER_S  # a stamp further back than this behind the newest one is an error, not disorder


@dataclass
class Defects:
    """What was wrong with the events of a stream that has been read, and was mended."""

    reordered: int = 0
    outside_sensor: int = 0

    def describe(self) -> list[str]:
        """Return one line for each kind of defect that was found."""
        lines = []
        if self.reordered:
            lines.append(f"{self.reordered:,} events came out of order and were sorted by their stamps")
        if self.outside_sensor:
            lines.append(f"{self.outside_sensor:,} events lay outside the sensor and were dropped")
        return lines


@dataclass(frozen=True)
class Piece:
    """Events as they came out of a file, and the words that name the place for an error message."""

    events: Events
    place: str


def restore_order(pieces: Iterable[Piece], defects: Defects) -> Iterator[Events]:
    """Yield the events of all pieces ordered by stamp; count those that stood behind a later one.

    Stamps that go back by up to a second, within a piece or between pieces, are sorted (a stable sort: events
    of the same stamp keep their order). A larger jump back is a `RecordingError` that names the place. For
    that, one second of events is held back. What came before an error
    of the pieces is yielded before it is raised.
    """
    held: deque[Events] = deque()
    try:
        yield from _in_order(pieces, defects, held)
    except RecordingError:
        yield from held
        raise


def _in_order(pieces: Iterable[Piece], defects: Defects, held: deque[Events]) -> Iterator[Events]:
    """Yield the events in order; those that later ones may still precede are in `held`."""
    newest_ns: int | None = None
    for piece in pieces:
        if not len(piece.events):
            continue
        events, newest_ns = _sorted_within(piece, newest_ns, defects)
        overlapping = []
        while held and held[-1].t_ns[-1] > events.t_ns[0]:
            overlapping.append(held.pop())
        if overlapping:
            events = Events.concatenate([*reversed(overlapping), events])
            events = events[np.argsort(events.t_ns, kind="stable")]
        held.append(events)
        while held[0].t_ns[-1] <= newest_ns - MAX_JUMP_BACK_NS:
            yield held.popleft()
    yield from held


def _sorted_within(piece: Piece, newest_ns: int | None, defects: Defects) -> tuple[Events, int]:
    """Sort one piece by stamp, having checked it against the newest stamp so far; return it and the newest now."""
    events = piece.events
    t_ns = events.t_ns
    first_ns = int(t_ns[0])
    ordered = bool((t_ns[1:] >= t_ns[:-1]).all())
    if ordered and (newest_ns is None or first_ns >= newest_ns):
        return events, int(t_ns[-1])
    before = np.empty_like(t_ns)  # the newest stamp before each event
    before[0] = first_ns if newest_ns is None else newest_ns
    np.maximum.accumulate(t_ns[:-1], out=before[1:])
    np.maximum(before, before[0], out=before)
    back_ns = before - t_ns
    worst = int(np.argmax(back_ns))
    if back_ns[worst] > MAX_JUMP_BACK_NS:
        raise RecordingError(
            f"time jumps back by {back_ns[worst] / NS_PER_S:.3f} s at event {worst} of {piece.place} "
            f"(from {before[worst]} to {t_ns[worst]} ns): more than 1 s is not disorder; "
            "cut the recording there, or repair its stamps"
        )
    defects.reordered += int((back_ns > 0).sum())
    newest_now = max(int(before[-1]), int(t_ns[-1]))
    return (events if ordered else events[np.argsort(t_ns, kind="stable")]), newest_now
