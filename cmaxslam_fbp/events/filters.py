"""Filters on a stream of events: drop what no lens sees and the hot pixels, keep every n-th event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.hot_pixels import HotPixelFilter, HotPixels
from cmaxslam_fbp.events.ordering import Defects
from cmaxslam_fbp.events.sensor import SensorSize

Watch = Callable[[Iterable[Events]], Iterator[Events]]  # passes all events on


class EventFilter:
    """Yields the events of one stream that lens and configuration leave in it: without hot pixels, then every n-th.

    `seen` (height, width) are the pixels on which the lens sees; events on others are dropped.
    """

    def __init__(self, config: EventsConfig, size: SensorSize, seen: npt.NDArray[np.bool_] | None = None) -> None:
        factor = config.hot_pixel_factor
        self._hot_pixels = None if factor is None else HotPixelFilter(size, factor)
        self._step = config.subsample
        self._seen = None if seen is None or seen.all() else seen

    def run(
        self, chunks: Iterable[Events], defects: Defects | None = None, *, watch: Watch | None = None
    ) -> Iterator[Events]:
        """Yield the events that are left; those that the lens does not see are counted in `defects`.

        What is to `watch` sees them before one of several is taken.
        """
        if self._seen is not None:
            chunks = keep_seen(chunks, self._seen, defects or Defects())
        if self._hot_pixels is not None:
            chunks = self._hot_pixels.run(chunks)
        return subsample(chunks if watch is None else watch(chunks), self._step)

    @property
    def hot_pixels(self) -> HotPixels:
        """The hot pixels that were dropped so far."""
        return HotPixels([]) if self._hot_pixels is None else self._hot_pixels.found


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
