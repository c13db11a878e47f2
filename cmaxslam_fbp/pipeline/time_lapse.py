"""Time lapse: a clock on which slow motion passes faster, so that the image always moves by something."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S

_SPEED_PX_S, _POWER = 40.0, 1.5  # of the image, below which time lapses: `(speed / measured)^power`
_SLICE_NS = 20_000_000  # of the recording: a lapse holds for it
_SLOW = 8.0  # a lapse from which on most events may be noise: it comes so many times as fast
_SILENCE_NS = 100_000_000  # without events passes as it is
_PARTS, _WHILE_S = 3, 0.15  # the largest speed of the parts of the last while counts, on the clock of the run
_PAUSE_S = 1.0  # of the recording, if longer, once something has moved: a hand pauses
_SLOWER_S, _FASTER_S = 0.02, 0.05  # of the run, in which a lapse may halve, and double
_LONG, _LONG_FASTER_S = 16.0, 0.02  # from this lapse on it doubles sooner: nothing has moved for long

_ZERO = {EstimateStatus.STILL, EstimateStatus.NO_EVIDENCE, EstimateStatus.TOO_FEW_EVENTS}


class TimeLapse:
    """How a time `t` of the recording and one of the run, `tau`, go together: `d tau / d t = 1 / lapse`, piecewise.

    From the time `t_k` on, `tau = tau_k + (t - t_k) / lapse_k`. Up to the first piece both clocks are the same.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int, float]] = []  # t_k, tau_k, lapse_k

    def add(self, t_ns: int, lapse: float) -> None:
        """Begin a new piece, after the last one, unless its lapse is the same."""
        if lapse != (self._pieces[-1][2] if self._pieces else 1.0):
            self._pieces.append((t_ns, int(self.of_last(np.int64(t_ns))), lapse))

    @property
    def is_plain(self) -> bool:
        """Whether both clocks are the same so far."""
        return not self._pieces

    def of_last(self, t_ns: npt.ArrayLike) -> IntArray:
        """Return times of the recording that lie in the last piece on the clock of the run."""
        t = np.asarray(t_ns, np.int64)
        if not self._pieces:
            return t
        start_ns, run_ns, lapse = self._pieces[-1]
        return run_ns + np.rint((t - start_ns) / lapse).astype(np.int64)

    def lapse_at(self, tau_ns: int) -> float:
        """Return the lapse at a time of the run."""
        piece = bisect_right(self._pieces, tau_ns, key=itemgetter(1)) - 1
        return self._pieces[piece][2] if piece >= 0 else 1.0

    def to_run(self, t_ns: npt.ArrayLike) -> IntArray:
        """Return times of the recording on the clock of the run."""
        t = np.asarray(t_ns, np.int64)
        pieces = list(self._pieces)  # the frontend's thread may add to them
        if not pieces:
            return t
        starts, run, lapses = (np.array(column) for column in zip(*pieces, strict=True))
        k = np.maximum(np.searchsorted(starts, t, side="right") - 1, 0)
        return np.where(t < starts[0], t, run[k] + np.rint((t - starts[k]) / lapses[k]).astype(np.int64))

    def to_recording(self, tau_ns: npt.ArrayLike) -> IntArray:
        """Return times of the run on the clock of the recording."""
        tau = np.asarray(tau_ns, np.int64)
        pieces = list(self._pieces)
        if not pieces:
            return tau
        starts, run, lapses = (np.array(column) for column in zip(*pieces, strict=True))
        k = np.maximum(np.searchsorted(run, tau, side="right") - 1, 0)
        return np.where(tau < run[0], tau, starts[k] + np.rint((tau - run[k]) * lapses[k]).astype(np.int64))

    def lapses_at(self, tau_ns: npt.ArrayLike) -> FloatArray:
        """Return the lapses at times of the run."""
        tau = np.asarray(tau_ns, np.int64)
        pieces = list(self._pieces)
        run = np.array([piece[1] for piece in pieces], np.int64)
        return np.array([1.0, *(piece[2] for piece in pieces)])[np.searchsorted(run, tau, side="right")]

    def is_slow(self, tau_ns: IntArray) -> npt.NDArray[np.bool_]:
        """Tell at which times (N,) of the run, in order, the image moves so slowly that noise is faster."""
        first, last = (bisect_right(self._pieces, t, key=itemgetter(1)) for t in tau_ns[[0, -1]].tolist())
        pieces = self._pieces[max(first - 1, 0) : last]
        is_slow = np.array([False, *(lapse >= _SLOW for *_, lapse in pieces)])
        if not is_slow.any():
            return np.zeros(len(tau_ns), bool)
        return is_slow[np.searchsorted([tau for _, tau, _ in pieces], tau_ns, side="right")]


class LapseControl:
    """Sets the clock of a run by the speeds that the frontend measures on it, as events come by.

    Where the image moves by `v < v_0 = 40 px/s`, time lapses `(v_0 / v)^(3/2)` times: everything that lasts some time
    (packets, passages, knots, windows) then suits the motion, which on this clock is one of 40 to 150 px/s down to a
    pixel per second. Faster motion may be a hand's, which shakes too fast for longer knots. Where nothing moves the
    lapse grows until something does. It never makes a packet hold more events than it may: many events are a motion
    that has begun.

    Parameters
    ----------
    camera : with its calibration
    config : all settings

    Attributes
    ----------
    lapse : TimeLapse
        As it was set so far.
    """

    def __init__(self, camera: Camera, config: Config) -> None:
        self.lapse = TimeLapse()
        self._px_per_rad = camera.px_per_rad()
        self._largest = config.events.time_lapse
        frontend = config.frontend
        # Packets without a limit in time have a number of events, whatever the clock.
        self._most_ev_s = frontend.events_per_packet / (frontend.max_packet_s or np.inf)
        self._speeds: deque[tuple[int, FloatArray]] = deque()
        self._now = self._wanted = 1.0
        self._has_moved = False

    def run(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Yield the events with the stamps of the run; also those that came just before an error of the stream."""
        held: list[Events] = []
        edge_ns, is_set, failure = 0, False, None
        stream = iter(chunks)
        while True:
            try:
                chunk = next(stream)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            while len(chunk):
                edge_ns = edge_ns or int(chunk.t_ns[0])
                count = int(np.searchsorted(chunk.t_ns, edge_ns + _SLICE_NS))
                if count:
                    held.append(chunk[:count])
                    chunk = chunk[count:]
                is_whole = len(chunk) > 0
                if held and not is_set and (is_whole or self._largest_lapse(held) <= 1):
                    self._set_lapse(held, edge_ns)
                    is_set = True
                if is_set:
                    yield from self._stamped(held)
                    held = []
                if not is_whole:
                    break
                if is_set:
                    is_set, edge_ns = False, edge_ns + _SLICE_NS
                    continue
                empty = (int(chunk.t_ns[0]) - edge_ns) // _SLICE_NS
                if empty * _SLICE_NS >= _SILENCE_NS:
                    self._now = 1.0
                    self.lapse.add(edge_ns, self._now)
                edge_ns += empty * _SLICE_NS
        if held:
            self._set_lapse(held, edge_ns)
        yield from self._stamped(held)
        if failure is not None:
            raise failure

    def _set_lapse(self, parts: list[Events], start_ns: int) -> None:
        """Set the lapse of a slice by its events."""
        passed_s = _SLICE_NS / NS_PER_S / self._now
        doubling_s = _FASTER_S if self._now < _LONG else _LONG_FASTER_S
        least, most = self._now * 2 ** (-passed_s / _SLOWER_S), self._now * 2 ** (passed_s / doubling_s)
        self._now = max(min(max(self._wanted, least), most, self._largest_lapse(parts)), 1.0)
        self.lapse.add(start_ns, self._now)

    def _largest_lapse(self, parts: list[Events]) -> float:
        """Return the lapse at which the events of a slice are as many as they may be: below one, none is possible."""
        return self._most_ev_s / (sum(map(len, parts)) / _SLICE_NS * NS_PER_S)

    def _stamped(self, parts: list[Events]) -> Iterator[Events]:
        """Yield the events of the slice whose lapse was set."""
        for events in parts:
            yield events if self.lapse.is_plain else replace(events, t_ns=self.lapse.of_last(events.t_ns))

    def see(self, estimate: VelocityEstimate) -> None:
        """Take in what the frontend has measured."""
        if not (estimate.status.is_measured or estimate.status in _ZERO):
            return
        t_ns = estimate.t_ns
        lapse = self.lapse.lapse_at(t_ns)
        self._has_moved = self._has_moved or estimate.status.is_measured
        whole_ns = round(max(_WHILE_S, (_PAUSE_S if self._has_moved else 0.0) / lapse) * NS_PER_S)
        self._speeds.append((t_ns, estimate.velocity * self._px_per_rad / lapse))
        while self._speeds[0][0] <= t_ns - whole_ns:
            self._speeds.popleft()
        if self._speeds[0][0] > t_ns - 0.9 * whole_ns:
            return  # too little is known
        ages = (t_ns - np.array([t for t, _ in self._speeds])) * _PARTS // whole_ns
        flows = np.array([flow for _, flow in self._speeds])
        means = [flows[ages == part].mean(axis=0) for part in range(_PARTS) if (ages == part).any()]
        speed_px_s = max(float(np.linalg.norm(mean)) for mean in means)
        self._wanted = min(max((_SPEED_PX_S / max(speed_px_s, 1e-9)) ** _POWER, 1.0), self._largest)
