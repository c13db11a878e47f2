"""Filters on a stream of events: drop the hot pixels, keep every n-th event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.hot_pixels import HotPixelFilter, HotPixels
from cmaxslam_fbp.events.sensor import SensorSize


class EventFilter:
    """Yields the events of one stream that the configuration leaves in it: without hot pixels, then every n-th."""

    def __init__(self, config: EventsConfig, size: SensorSize) -> None:
        factor = config.hot_pixel_factor
        self._hot_pixels = None if factor is None else HotPixelFilter(size, factor)
        self._step = config.subsample

    def run(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the events that are left."""
        return subsample(chunks if self._hot_pixels is None else self._hot_pixels.run(chunks), self._step)

    @property
    def hot_pixels(self) -> HotPixels:
        """The hot pixels that were dropped so far."""
        return HotPixels([]) if self._hot_pixels is None else self._hot_pixels.found


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
