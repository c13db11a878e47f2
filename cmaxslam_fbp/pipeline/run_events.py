"""The events of a run: one pass over the recording after another, filtered, on the run's clock, cut into windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from cmaxslam_fbp.backend.window import Window, cut_into_windows
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.filters import EventFilter
from cmaxslam_fbp.events.lone_events import LoneEvents
from cmaxslam_fbp.events.passages import LONGEST_NS
from cmaxslam_fbp.frontend.estimate import VelocityEstimate
from cmaxslam_fbp.intensity.event_sample import EventSample
from cmaxslam_fbp.io.recording import EventStream, Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.gaps import RunClock
from cmaxslam_fbp.pipeline.time_lapse import LapseControl

_CROSSING_PX = 7.0  # of motion, by when a blurred edge has passed a pixel, also one near the centre of a roll
_SLOWEST = 4.0  # times `passage_s` that a passage lasts at most
# The brightness is made of at most so many events, for each pixel per pixel of the map; of a sensor with more pixels
# than these of fewer, since its tables need the memory.
_PAINTED_EVENTS, _PAINTED_PIXELS = 8_000_000, 640 * 480


class RunEvents:
    """What all stages of a run work on.

    Parameters
    ----------
    config : all settings
    recording : with a calibrated camera
    start_s, duration_s : the range, in seconds from the first event
    keep_s : how much of the recording `last` gives

    Attributes
    ----------
    stream : EventStream
        The first pass over the recording.
    clock : RunClock
        Of the run: without gaps, and faster where the image is slow, by its `lapse`.
    filter : EventFilter
        That of the first pass.
    lone : LoneEvents
        Those that the first pass has left out where time lapses.
    sample : EventSample or None
        The events of which the brightness is made.
    count, start_ns, end_ns : int
        How many events the first pass has had so far, and the stamps of the first and the last on the run's clock.
    passages_s : float
        The time that cutting them into windows has taken.
    """

    def __init__(
        self, config: Config, recording: Recording, start_s: float | None, duration_s: float | None, keep_s: float
    ) -> None:
        self._config, self._recording, self._range = config, recording, (start_s, duration_s)
        self._px_per_rad = recording.require_camera().px_per_rad()
        self._control = LapseControl(recording.require_camera(), config)
        self.lapse = self._control.lapse
        self.clock, self.filter, self.lone = self._new_clock(), self._new_filter(), self._new_lone_events()
        self.stream: EventStream = recording.chunks(start_s, duration_s)
        self.sample: EventSample | None = None
        if config.intensity.enabled:
            size = recording.sensor_size
            room = min(_PAINTED_PIXELS / (size.width * size.height), 1.0)
            self.sample = EventSample(size, round(_PAINTED_EVENTS * room) * config.intensity.scale)
        self.count = self.start_ns = self.end_ns = 0
        self.passages_s = 0.0
        self._keep_ns, self._kept = round(keep_s * NS_PER_S), Events.empty()
        self._feed: Feed | None = None

    def chunks(self) -> tuple[Iterator[Events], Callable[[VelocityEstimate], None] | None]:
        """Return the events of the first pass, and what wants to see the velocities that are found in them."""
        watch = None if self.sample is None else self.sample.watch
        events = self.clock.shorten(self.filter.run(self.stream, self.stream.defects, watch=watch))
        # Slow motion passes faster, but not while somebody waits for poses.
        if self._config.events.time_lapse > 1 and self._recording.live is None:
            return self.lone.run(self._control.run(events)), self._control.see
        return events, None

    def is_thinned(self, t_ns: int) -> bool:
        """Tell whether lone events are left out at a time of the run."""
        return self._config.events.least_neighbours > 0 and bool(self.lapse.is_slow(np.array([t_ns]))[0])

    def windows(self, feed: Feed) -> Iterator[Window]:
        """Yield the windows of the first pass."""
        self._feed = feed
        began = time.perf_counter()
        for window in self._cut(self._counted(feed.chunks())):
            self.passages_s += time.perf_counter() - began
            yield window
            began = time.perf_counter()

    def again(self) -> Iterator[Events]:
        """Return the events of a new pass."""
        stream = self._recording.chunks(*self._range)
        events = self._new_clock().shorten(self._new_filter().run(stream, stream.defects))
        if self.lapse.is_plain:
            return iter(events)
        stamped = (replace(chunk, t_ns=self.lapse.to_run(chunk.t_ns)) for chunk in events)
        return self._new_lone_events().run(stamped)

    def windows_again(self) -> Iterator[Window]:
        """Yield the windows of a new pass."""
        return self._cut(self.again())

    def last(self, end_ns: int) -> Events:
        """Return what is kept of the events before the end of a window, with the recording's stamps."""
        events = self._kept.between(end_ns - self._keep_ns, end_ns)
        return replace(events, t_ns=self.clock.to_recording(events.t_ns))

    def forget(self, end_ns: int) -> None:
        """Let go of what is kept of the time before, now that a window which ends then is done."""
        self._kept = self._kept.between(end_ns - self._keep_ns, self.end_ns + 1)

    def _new_clock(self) -> RunClock:
        return RunClock(round(self._config.backend.stride_s * NS_PER_S), self._control.lapse)

    def _new_filter(self) -> EventFilter:
        seen = self._recording.require_camera().seen_pixels()
        return EventFilter(self._config.events, self._recording.sensor_size, seen)

    def _new_lone_events(self) -> LoneEvents:
        return LoneEvents(self._recording.sensor_size, self.lapse.is_slow, self._config.events.least_neighbours)

    def _counted(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Count the events that come by; to wait for them is not the time of those who do."""
        began = time.perf_counter()
        for events in chunks:
            self.passages_s -= time.perf_counter() - began
            if len(events):
                if self.count == 0:
                    self.start_ns = int(events.t_ns[0])
                self.end_ns = int(events.t_ns[-1])
                self.count += len(events)
                if self._keep_ns:
                    self._kept = Events.concatenate([self._kept, events])
            yield events
            began = time.perf_counter()

    def _cut(self, chunks: Iterable[Events]) -> Iterator[Window]:
        return cut_into_windows(chunks, self._recording.sensor_size, self._config.backend, self._longest_passage_ns)

    def _longest_passage_ns(self, t_ns: int) -> int:
        """Return how long an edge may take to pass a pixel: the slower the image moves, the longer."""
        shortest_s = self._config.backend.passage_s
        speed_px_s = None if self._feed is None else self._feed.speed_at(t_ns, self._px_per_rad)
        if speed_px_s is None:
            return round(shortest_s * NS_PER_S)
        crossing_s = _CROSSING_PX / max(speed_px_s, 1e-9)
        return min(round(min(max(crossing_s, shortest_s), _SLOWEST * shortest_s) * NS_PER_S), LONGEST_NS)
