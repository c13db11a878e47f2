"""Filters on a stream of events: drop what no lens sees and the pixels that are hot, keep every n-th event."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.events.ordering import Defects
from cmaxslam_fbp.events.sensor import SensorSize

_BLOCK_NS = 100_000_000  # the pixels are judged after each such time, of whose events they are then dropped
_MOST_HELD = 3_000_000  # events of a block: after so many they are judged earlier, for the memory
_MEMORY = 32  # blocks after which a count has faded to a third
# No edge makes a pixel fire so often without its neighbours, in a block and in the memory: as it passes, a pixel fires
# once per threshold.
_FEWEST, _FEWEST_REMEMBERED = 30.0, 50.0

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


@dataclass(frozen=True)
class HotPixels:
    """What was dropped: `pixels` (x, y, events) by their number of events, the most first."""

    pixels: list[tuple[int, int, int]]

    @property
    def events(self) -> int:
        """The number of events of all of them."""
        return sum(events for _, _, events in self.pixels)


class HotPixelFilter:
    """Drops the events of pixels that fire far more often than all those around them.

    Counts of two kinds are kept of each pixel: of the last 0.1 s, and of the last 3 s or so. After each 0.1 s of the
    stream (sooner where its events are very many), pixels are hot that belong to an island: at most four pixels, each
    with more than `factor` times as many events as any pixel beside them. An edge that lingers excites more pixels
    than that, a defect does not; neither does a lamp that flickers. A pixel stays hot until it stands out by less
    than half the factor. The judgement holds for the events of the same 0.1 s already, and does not depend on how the
    stream is cut.

    Parameters
    ----------
    size : of the sensor
    factor : by which a hot pixel exceeds those around it
    """

    def __init__(self, size: SensorSize, factor: float) -> None:
        self._size, self._factor = size, np.float32(factor)
        pixels = size.width * size.height
        self._counts, self._remembered = np.zeros((2, pixels), np.float32)
        self._hot = np.zeros(pixels, bool)
        self._dropped = np.zeros(pixels, np.int64)
        self._blocks_since = 1

    def run(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the events of a stream that are not of hot pixels; all that came before an error come before it."""
        held: deque[Events] = deque()
        room = _MOST_HELD
        end_ns: int | None = None
        error: Exception | None = None
        try:
            for chunk in chunks:
                events = chunk
                while len(events):
                    if end_ns is None:
                        end_ns = int(events.t_ns[0]) + _BLOCK_NS
                    count = min(int(np.searchsorted(events.t_ns, end_ns)), room)
                    if count:
                        held.append(events[:count])
                        events, room = events[count:], room - count
                    if len(events):
                        blocks = (int(events.t_ns[0]) - end_ns) // _BLOCK_NS + 1  # none, where the room was too small
                        yield from self._judged(held, blocks)
                        end_ns, room = end_ns + blocks * _BLOCK_NS, _MOST_HELD
        except Exception as raised:
            error = raised
        yield from self._judged(held, 1)
        if error is not None:
            raise error

    @property
    def found(self) -> HotPixels:
        """What was dropped so far."""
        pixels = np.flatnonzero(self._dropped)
        pixels = pixels[np.argsort(-self._dropped[pixels], kind="stable")]
        rows, columns = np.divmod(pixels, self._size.width)
        return HotPixels(list(zip(columns.tolist(), rows.tolist(), self._dropped[pixels].tolist(), strict=True)))

    def _judged(self, held: deque[Events], blocks: int) -> Iterator[Events]:
        """Judge all pixels by the events of a block; yield those events, which leave `held`, without those of hot ones.

        The next block is so many blocks later.
        """
        from cmaxslam_fbp.events import hot_pixel_kernels as kernels

        width, factor, hot = self._size.width, self._factor, self._hot
        for events in held:
            kernels.count_events(events.x, events.y, width, self._counts)
        if hot.any():
            kernels.release(self._remembered, np.float32(_FEWEST), width, factor, hot)
        kernels.mark_hot(self._counts, np.float32(_FEWEST), width, factor, hot)
        fading = np.float32((1 - 1 / _MEMORY) ** self._blocks_since)
        self._blocks_since = blocks
        kernels.add_decayed(self._remembered, fading, self._counts)
        kernels.mark_hot(self._remembered, np.float32(_FEWEST_REMEMBERED), width, factor, hot)
        drops = bool(hot.any())
        while held:
            events = held.popleft()
            if not drops:
                yield events
                continue
            kept = Events.room_for(len(events))
            count = kernels.drop_events(
                events.t_ns, events.x, events.y, events.p, width, hot, self._dropped, kept.t_ns, kept.x, kept.y, kept.p
            )  # fmt: skip
            if count:
                yield kept[:count] if count < len(events) else events
