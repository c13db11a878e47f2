"""All events of some of the sensor's pixels, kept while a recording is read: of as many pixels as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.sensor import SensorSize
from cmaxslam_fbp.intensity.pixel_choice import PixelChoice

_FEWER = 0.7  # of the pixels stay, where their events are too many
_CHUNK = 1 << 20


class EventSample:
    """Keeps at most so many events. Where there are more, its pixels become fewer, and stay spread evenly.

    Which pixels they are in the end does not depend on how the recording is cut into chunks.

    Parameters
    ----------
    size : of the sensor
    most : int
        How many events there is room for, 13 bytes each.
    """

    def __init__(self, size: SensorSize, most: int) -> None:
        self._most, self._count, self._share = most, 0, 1.0
        self._all = np.ones((size.height, size.width), np.bool_)
        self._choose = PixelChoice(self._all, self._share)
        # Memory that is not written to is not taken.
        x, y, p = np.empty(most, np.uint16), np.empty(most, np.uint16), np.empty(most, np.uint8)
        self._kept = Events(np.empty(most, np.int64), x, y, p)

    def __len__(self) -> int:
        return self._count

    def watch(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the chunks, and keep what is chosen of them."""
        for events in chunks:
            self._add(events)
            yield events

    def chunks(self) -> Iterator[Events]:
        """Yield what was kept, in order."""
        for start in range(0, self._count, _CHUNK):
            yield self._kept[start : min(start + _CHUNK, self._count)]

    def _add(self, events: Events) -> None:
        if self._count + len(events) <= self._most:  # all would have room: they are written where they stay
            self._count += self._choose.write(events, self._kept[self._count :])
            return
        chosen = self._choose(events)
        while self._count + len(chosen) > self._most:
            self._share *= _FEWER
            self._choose = PixelChoice(self._all, self._share)
            self._count = self._choose.write(self._kept[: self._count], self._kept)
            chosen = self._choose(chosen)
        kept, place = self._kept, slice(self._count, self._count + len(chosen))
        for column, more in ((kept.t_ns, chosen.t_ns), (kept.x, chosen.x), (kept.y, chosen.y), (kept.p, chosen.p)):
            column[place] = more
        self._count = place.stop
