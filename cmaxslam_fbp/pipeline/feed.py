"""Reading and frontend in a thread of their own: events and velocities for the backend, over a bounded queue."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.frontend.rotation_check import Drowned, RotationCheck, RotationResidual
from cmaxslam_fbp.pipeline.velocities import MEASURED, STATUSES, VelocityTable
from cmaxslam_fbp.trajectory import AngularVelocities

_ITEMS_AHEAD = 32  # in the queue; so many events count as one more
_EVENTS_OF_AN_ITEM = 1 << 15
_POLL_S = 0.2
_CHECK_EVERY_NS = 250_000_000  # a packet is looked at for what a rotation does not explain

# A velocity that is not known is left out: the integration goes on from its neighbours'.
_UNKNOWN = {EstimateStatus.DEGENERATE, EstimateStatus.TOO_FEW_EVENTS}

_RECENT_NS = 200_000_000  # a speed is that of the last while: at a turning point edges do not stay
_NO_EVIDENCE = STATUSES.index(EstimateStatus.NO_EVIDENCE)
_STILL_SHARE = 0.75  # of the packets of a window: with more that are no evidence it counts as still

_Item = Events | VelocityEstimate | RotationResidual | Drowned | BaseException | None  # None is the end


class _EventQueue(queue.Queue[_Item]):
    """A queue that is full by what its items hold, not by their number alone: chunks may be of any size."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._events = 0

    def _qsize(self) -> int:
        return len(self.queue) + self._events // _EVENTS_OF_AN_ITEM

    def _put(self, item: _Item) -> None:
        super()._put(item)
        self._events += len(item) if isinstance(item, Events) else 0

    def _get(self) -> _Item:
        item = super()._get()
        self._events -= len(item) if isinstance(item, Events) else 0
        return item


class Feed:
    """Runs the frontend over a stream of events beside the caller's thread.

    The order of what it gives does not depend on timing. Closing it (a context manager) stops the thread. An error of
    the thread ends the stream; it is raised when the context is left, so that what came before it is worked on first.

    Parameters
    ----------
    chunks : events in order
    estimator : the frontend
    on_estimate : called in the thread with each estimate, before any event is asked for that this one does not need

    Attributes
    ----------
    velocities : VelocityTable
        Those that have arrived so far.
    residuals : list of RotationResidual
        What a rotation leaves of the motion in some packets, a few per second.
    drowned : list of Drowned
        Those of them that tell nothing for noise.
    busy_s : float
        Time that reading and frontend have worked, without waiting for the backend.
    """

    def __init__(
        self,
        chunks: Iterable[Events],
        estimator: VelocityEstimator,
        on_estimate: Callable[[VelocityEstimate], None] | None = None,
    ) -> None:
        self.velocities = VelocityTable()
        self.residuals: list[RotationResidual] = []
        self.drowned: list[Drowned] = []
        self.busy_s = 0.0
        self._on_estimate = on_estimate
        self._last_ns: int | None = None
        self._known: list[VelocityEstimate] = []
        self._queue = _EventQueue(_ITEMS_AHEAD)
        self._pending: deque[Events] = deque()
        self._ended = False
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(chunks, estimator), name="frontend", daemon=True)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None and (kind is None or issubclass(kind, Exception)):
            raise self._error

    def chunks(self) -> Iterator[Events]:
        """Yield the events in order."""
        while True:
            while not self._pending and not self._ended:
                self._receive()
            if not self._pending:
                return
            yield self._pending.popleft()

    def velocities_until(self, start_ns: int, end_ns: int) -> AngularVelocities | None:
        """Return the known velocities around `start_ns` to `end_ns`, one beyond each end where there is one; or None.

        Waits until the frontend has passed `end_ns` or the stream has ended. The next call must not start earlier:
        what lies before is forgotten.
        """
        while not self._ended and (self._last_ns is None or self._last_ns < end_ns):
            self._receive()
        if not self._known:
            return None
        del self._known[: max(bisect_right(self._known, start_ns, key=_time_ns) - 1, 0)]
        chosen = self._known[: max(bisect_left(self._known, end_ns, key=_time_ns) + 1, 1)]
        times = np.array([estimate.t_ns for estimate in chosen], np.int64)
        return AngularVelocities(times, np.array([estimate.velocity for estimate in chosen]))

    def speed_at(self, t_ns: int, px_per_rad: FloatArray) -> float | None:
        """Return the largest speed of the image in px/s that was measured in the last while before a time.

        A turn about each axis moves the image by so many pixels per radian (3,). None where nothing was measured for a
        while: a motion that has just begun gets faster.

        Waits until the frontend has passed that time or the stream has ended.
        """
        while not self._ended and (self._last_ns is None or self._last_ns < t_ns):
            self._receive()
        rows = self.velocities.rows()
        first, last = np.searchsorted(rows["t_ns"], [t_ns - _RECENT_NS, t_ns])
        near = rows[first:last]
        near = near[MEASURED[near["status"]]]
        if not len(near) or near["t_ns"][0] > t_ns - _RECENT_NS // 2:
            return None
        return float(np.linalg.norm(near["omega_rad_s"] * px_per_rad, axis=1).max())

    def lacks_evidence(self, start_ns: int, end_ns: int) -> bool:
        """Tell whether most packets so far, from `start_ns` to `end_ns`, were no evidence of a motion."""
        rows = self.velocities.rows()
        first, last = np.searchsorted(rows["t_ns"], [start_ns, end_ns])
        return bool(np.count_nonzero(rows["status"][first:last] == _NO_EVIDENCE) > _STILL_SHARE * (last - first))

    def _receive(self) -> None:
        """Take the next item from the queue."""
        item = self._queue.get()
        if item is None:
            self._ended = True
        elif isinstance(item, Events):
            self._pending.append(item)
        elif isinstance(item, VelocityEstimate):
            self.velocities.append(item)
            self._last_ns = item.t_ns
            if item.status not in _UNKNOWN:
                self._known.append(item)
        elif isinstance(item, RotationResidual):
            self.residuals.append(item)
        elif isinstance(item, Drowned):
            self.drowned.append(item)
        else:
            self._ended, self._error = True, item

    def _work(self, chunks: Iterable[Events], estimator: VelocityEstimator) -> None:
        began = time.perf_counter()
        self._waited_s = 0.0

        def passed_on() -> Iterator[Events]:
            for events in chunks:
                self._put(events)
                yield events

        try:
            check, due_ns = RotationCheck(estimator.camera), 0
            for packet in estimator.packets(passed_on()):
                estimate = estimator.estimate(packet)
                if self._on_estimate is not None:
                    self._on_estimate(estimate)
                self._put(estimate)
                if packet.t_ns >= due_ns and (residual := check.look(packet, estimate)) is not None:
                    self._put(residual)
                    due_ns = packet.t_ns + _CHECK_EVERY_NS
                self.busy_s = time.perf_counter() - began - self._waited_s
            self._put(None)
        except _StoppedError:
            pass
        except BaseException as error:  # handed to the caller's thread, where it belongs
            with contextlib.suppress(_StoppedError):
                self._put(error)

    def _put(self, item: _Item) -> None:
        began = time.perf_counter()
        while True:
            if self._stop.is_set():
                raise _StoppedError
            try:
                self._queue.put(item, timeout=_POLL_S)
                break
            except queue.Full:
                continue
        self._waited_s += time.perf_counter() - began


def _time_ns(estimate: VelocityEstimate) -> int:
    return estimate.t_ns


class _StoppedError(Exception):
    """The caller does not want any more."""
