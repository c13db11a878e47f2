"""The sliding window over the events of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.passages import LongestRun, edge_passages, passages_for
from cmaxslam_fbp.nanoseconds import NS_PER_S


@dataclass(frozen=True)
class Window:
    """The events of `[start_ns, end_ns)`; the next window starts at `next_ns`, and the last one is marked."""

    events: Events
    start_ns: int
    end_ns: int
    next_ns: int
    is_last: bool

    @property
    def middle_ns(self) -> int:
        """The time in its middle."""
        return (self.start_ns + self.end_ns) // 2

    @property
    def leaving_ns(self) -> int:
        """Where the next window starts; the end of the last one."""
        return self.end_ns if self.is_last else self.next_ns

    @property
    def leaving(self) -> Events:
        """The events that no later window holds."""
        return self.events.between(self.start_ns, self.leaving_ns)

    def is_still(self, rate_ev_s: float) -> bool:
        """Tell whether there are fewer events than a camera that moves would cause; or none at all."""
        return len(self.events) < max(rate_ev_s * (self.end_ns - self.start_ns) / NS_PER_S, 1)


def sliding_windows(chunks: Iterable[Events], window_ns: int, stride_ns: int) -> Iterator[Window]:
    """Yield windows of `window_ns` every `stride_ns`, the first one at the first event.

    The last window is the one that reaches the end of the stream; it may hold less than its length. Every event lies in
    at least one window.
    """
    if not 0 < stride_ns <= window_ns:
        raise ValueError(f"a window of {window_ns} ns cannot move by {stride_ns} ns")
    stream = iter(chunks)
    held = Events.empty()
    start_ns: int | None = None
    ended = False
    while True:
        parts = [held]
        while not ended and (start_ns is None or not len(parts[-1]) or parts[-1].t_ns[-1] < start_ns + window_ns):
            chunk = next((chunk for chunk in stream if len(chunk)), None)
            if chunk is None:
                ended = True
                break
            parts.append(chunk)
            if start_ns is None:
                start_ns = int(chunk.t_ns[0])
        if start_ns is None:
            return
        held = Events.concatenate(parts)
        end_ns, next_ns = start_ns + window_ns, start_ns + stride_ns
        is_last = ended and (not len(held) or int(held.t_ns[-1]) < end_ns)
        yield Window(held.between(start_ns, end_ns), start_ns, end_ns, next_ns, is_last)
        if is_last:
            return
        start_ns = next_ns
        held = held.between(start_ns, int(held.t_ns[-1]) + 1)


def cut_into_windows(
    chunks: Iterable[Events], size: SensorSize, config: BackendConfig, longest_ns: LongestRun | None = None
) -> Iterator[Window]:
    """Yield the windows that the backend works on: of passages of edges, or of all events, as configured.

    A passage lasts up to `longest_ns`, see `edge_passages`; by default up to `passage_s`.
    """
    lengths_ns = round(config.window_s * NS_PER_S), round(config.stride_s * NS_PER_S)
    if config.passage_s == 0:
        yield from sliding_windows(chunks, *lengths_ns)
        return
    enough, most = (rate * config.window_s for rate in (config.enough_passages_s, config.most_passages_s))
    longest_ns = longest_ns or round(config.passage_s * NS_PER_S)
    passages = edge_passages(chunks, size, longest_ns, config.most_passages_s)
    for window in sliding_windows(passages, *lengths_ns):
        yield replace(window, events=passages_for(window.events, config.passage_events, enough, most))
