"""Filters on a stream of events: drop what no lens sees and the hot pixels, keep every n-th event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.ordering import Defects
from cmaxslam_fbp.events.sensor import SensorSize

HOT_PIXEL_EVENTS = 1_000_000  # events at the start of the stream in which hot pixels are looked for


def filter_events(
    chunks: Iterable[Events],
    config: EventsConfig,
    size: SensorSize,
    seen: npt.NDArray[np.bool_] | None = None,
    defects: Defects | None = None,
) -> Iterator[Events]:
    """Yield the events of a stream that lens and configuration leave in it: without hot pixels, then every n-th.

    `seen` (height, width) are the pixels on which the lens sees; events on others are dropped and counted in `defects`.
    """
    if seen is not None and not seen.all():
        chunks = keep_seen(chunks, seen, defects or Defects())
    if config.hot_pixel_factor is not None:
        chunks = remove_hot_pixels(chunks, size, config.hot_pixel_factor)
    return subsample(chunks, config.subsample)


def keep_seen(chunks: Iterable[Events], seen: npt.NDArray[np.bool_], defects: Defects) -> Iterator[Events]:
    """Drop the events on pixels on which the lens does not see, and count them."""
    for events in chunks:
        kept = events[seen[events.y, events.x]]
        defects.beyond_lens += len(events) - len(kept)
        if len(kept):
            yield kept


def subsample(chunks: Iterable[Events], step: int) -> Iterator[Events]:
    """Keep every `step`-th event of the stream, however it is cut into chunks."""
    if step < 1:
        raise ValueError(f"the step of a subsampling is 1 or more, not {step}")
    phase = 0
    for events in chunks:
        kept = events[phase::step] if step > 1 else events
        phase = (phase - len(events)) % step
        if len(kept):
            yield kept


def find_hot_pixels(events: Events, size: SensorSize, factor: float) -> npt.NDArray[np.bool_]:
    """Return a mask (height, width) of the pixels that fire far more often than those around them.

    A pixel is hot if its count exceeds `factor` times the largest count among its eight neighbours, and five standard
    deviations of the count there: an edge that lingers excites neighbours too, a defect does not.
    """
    flat = events.y.astype(np.intp) * size.width + events.x
    counts = np.bincount(flat, minlength=size.width * size.height).reshape(size.height, size.width).astype(np.float64)
    padded = np.pad(counts, 1)
    shifts = [(dy, dx) for dy in range(3) for dx in range(3) if (dy, dx) != (1, 1)]
    around = np.max([padded[dy : dy + size.height, dx : dx + size.width] for dy, dx in shifts], axis=0)
    return counts > np.maximum(factor * around, around + 5 * np.sqrt(around + 1))


def remove_hot_pixels(chunks: Iterable[Events], size: SensorSize, factor: float) -> Iterator[Events]:
    """Drop the events of hot pixels, which are found in the first million events of the stream."""
    stream = iter(chunks)
    head: list[Events] = []
    count = 0
    for events in stream:
        head.append(events)
        count += len(events)
        if count >= HOT_PIXEL_EVENTS:
            break
    if not head:
        return
    hot = find_hot_pixels(Events.concatenate(head), size, factor)
    for part in (head, stream):
        for events in part:
            kept = events[~hot[events.y, events.x]]
            if len(kept):
                yield kept
