"""All events of some of the sensor's pixels: what one saw, its neighbours saw too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.sensor import SensorSize

_FEWER = 0.7  # of the pixels stay, where their events are too many
_CHUNK = 1 << 20
# Steps of the plane's most even sequence of points (of the root of x^3 = x + 1): any part of it is spread evenly.
_STEP_X, _STEP_Y = 0.7548776662466927, 0.5698402909980532


class PixelChoice:
    """Keeps the events of a share of the pixels.

    Parameters
    ----------
    usable : (height, width) bool
        Pixels that may be chosen.
    share : float
        Of the pixels, from 0 to 1; they are spread evenly.
    """

    def __init__(self, usable: npt.NDArray[np.bool_], share: float) -> None:
        height, width = usable.shape
        places = np.arange(width) * _STEP_X + (np.arange(height) * _STEP_Y)[:, None]
        self.chosen = usable & (np.mod(places, 1, out=places) < share)

    def __call__(self, events: Events) -> Events:
        """Return the events of the chosen pixels."""
        if self.chosen.all():
            return events
        kept = Events.room_for(len(events))
        return kept[: self.write(events, kept)]

    def write(self, events: Events, kept: Events) -> int:
        """Write the events of the chosen pixels to others, of which there are as many; return their number."""
        chosen = self.chosen.view(np.uint8)
        columns = (kept.t_ns, kept.x, kept.y, kept.p)
        return int(_keep_chosen(events.t_ns, events.x, events.y, events.p, chosen, *columns))


class EventSample:
    """Keeps at most so many events while a recording is read, of as many pixels as there is room for.

    Where events are too many, the pixels become fewer, and stay spread evenly. Which pixels they are in the end does
    not depend on how the recording is cut into chunks.

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
        self._kept = Events.room_for(most)  # memory that is not written to is not taken

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


@compiled
def _keep_chosen(
    t_ns: Any, x: Any, y: Any, p: Any, chosen: Any, kept_t_ns: Any, kept_x: Any, kept_y: Any, kept_p: Any
) -> int:
    """Write the events (N,) of the pixels that are `chosen` (height, width), and return how many they are."""
    kept = 0
    for i in range(len(x)):
        kept_t_ns[kept], kept_x[kept], kept_y[kept], kept_p[kept] = t_ns[i], x[i], y[i], p[i]
        kept += chosen[y[i], x[i]]
    return kept
