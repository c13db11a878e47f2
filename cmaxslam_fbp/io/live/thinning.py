"""How many of the events of a stream are kept, where they come faster than they can be worked on."""

from __future__ import annotations

from dataclasses import dataclass, field

from cmaxslam_fbp.events import Events

_FOR_EACH_DOUBLING_S = 0.25  # of the age of the oldest events that wait
_MOST_DOUBLINGS = 10  # of a sensor's events nothing is left then that costs time
_BETWEEN_DECISIONS_S = 0.1
_MOST_WAITING = 4_000_000  # events; 52 MB. What comes beyond is dropped
_MOST_DECISIONS = 1000  # that are kept


@dataclass
class Thinning:
    """Keeps every `step`-th event of the stream: `step` is 1 where no events wait, and doubles with their age.

    So the work is never further behind than some age, at which what is kept can be done in time. What is kept depends
    on the events and the decisions alone.

    Attributes
    ----------
    read, dropped : int
        Numbers of events.
    largest_step : int
        The most that was thinned.
    decisions : list of (int, int)
        The stamp from which a step held, and the step; the first thousand of them.
    """

    read: int = 0
    dropped: int = 0
    largest_step: int = 1
    decisions: list[tuple[int, int]] = field(default_factory=list)
    _step: int = 1
    _phase: int = 0
    _decided_s: float = float("-inf")

    def thin(self, events: Events, now_s: float, oldest_s: float, waiting: int) -> Events:
        """Return what is kept of events that have arrived, where others wait: so many, for up to `oldest_s`."""
        if now_s >= self._decided_s + _BETWEEN_DECISIONS_S:
            self._decide(int(events.t_ns[0]), now_s, oldest_s)
        if waiting > _MOST_WAITING:
            kept = events[:0]
        else:
            kept = events[self._phase :: self._step] if self._step > 1 else events
            self._phase = (self._phase - len(events)) % self._step
        self.read += len(events)
        self.dropped += len(events) - len(kept)
        return kept

    def _decide(self, t_ns: int, now_s: float, oldest_s: float) -> None:
        step = 1 << min(int(oldest_s / _FOR_EACH_DOUBLING_S), _MOST_DOUBLINGS)
        if step == self._step:
            return
        self._step, self._phase, self._decided_s = step, 0, now_s
        self.largest_step = max(step, self.largest_step)
        if len(self.decisions) < _MOST_DECISIONS:
            self.decisions.append((t_ns, step))

    def describe(self) -> list[str]:
        """Return a line where events were dropped."""
        if not self.dropped:
            return []
        return [
            f"the work could not keep up with the stream: {self.dropped:,} of its {self.read:,} events were left out; "
            f"at the worst time one event of {self.largest_step} was kept"
        ]
