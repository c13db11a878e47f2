"""The way from the pixels to the recording: stamps that jitter, and an arbiter that passes one event at a time."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.simulation.sensor_settings import SensorSettings

_REACH = 3.0  # no stamp is off by more than so many standard deviations


class Readout:
    """Delays events as the read-out of a sensor does; their order by stamp is kept, and stamps are whole microseconds.

    The arbiter needs `1 / readout_rate_hz` for each event: one that comes earlier waits for those before it. Events
    that still wait at the end of the recording are lost.

    Parameters
    ----------
    settings : SensorSettings
        Jitter and rate.
    seed : int
        Draws the jitter.
    start_ns, end_ns : int
        Of the recording; all stamps lie in `(start, end]`.
    """

    def __init__(self, settings: SensorSettings, seed: int, start_ns: int, end_ns: int) -> None:
        self._jitter_ns = settings.jitter_s * 1e9
        self._service_ns = 1e9 / settings.readout_rate_hz
        self._start_ns, self._end_ns = start_ns, end_ns
        self._rng = np.random.default_rng([seed, 0x52656164])
        self._waiting = Events.empty()
        self._free_ns = 0.0  # since the start: when the arbiter is free again

    def pass_events(self, events: Events, until_ns: int) -> Events:
        """Return what leaves the sensor when the pixels have fired `events`, which are all up to `until_ns`."""
        if self._jitter_ns == 0 and self._service_ns == 0:
            return events
        errors = np.clip(self._rng.standard_normal(len(events)), -_REACH, _REACH) * self._jitter_ns
        stamps = np.clip(events.t_ns + np.round(errors).astype(np.int64), self._start_ns + 1, self._end_ns)
        moved = Events.concatenate([self._waiting, Events(stamps, events.x, events.y, events.p)])
        moved = moved[np.argsort(moved.t_ns, kind="stable")]
        # Nothing that is still to come can be stamped before this.
        settled_ns = until_ns - _REACH * self._jitter_ns if until_ns < self._end_ns else until_ns
        count = int(np.searchsorted(moved.t_ns, settled_ns, side="right"))
        self._waiting = moved[count:]
        passed = moved[:count]
        leave_ns = self._arbitrate(passed.t_ns - self._start_ns)
        stamps = self._start_ns + -(-leave_ns // 1000) * 1000
        stamped = Events(stamps, passed.x, passed.y, passed.p)
        return stamped[: int(np.searchsorted(stamps, self._end_ns, side="right"))]

    def _arbitrate(self, arrive_ns: IntArray) -> IntArray:
        """Times (M,) since the start at which events leave: `leave_i = max(arrive_i, leave_(i-1) + service)`."""
        if self._service_ns == 0 or len(arrive_ns) == 0:
            return arrive_ns
        turns = self._service_ns * np.arange(len(arrive_ns))
        leave = np.maximum(np.maximum.accumulate(arrive_ns - turns), self._free_ns) + turns
        self._free_ns = float(leave[-1]) + self._service_ns
        return np.round(leave).astype(np.int64)
