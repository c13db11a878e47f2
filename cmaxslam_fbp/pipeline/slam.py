"""The SLAM: recording, frontend, backend, result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.backend.backend import Backend, WindowReport
from cmaxslam_fbp.backend.window import Window, cut_into_windows
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import RecordingError, TrajectoryError
from cmaxslam_fbp.evaluation import Evaluation, evaluate
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.io.recording import EventStream, Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.result import SlamResult, Timing

_REFINED_DEG = 0.01  # a pass of the refinement that turns windows by less, in the mean, is the last one


@dataclass(frozen=True)
class Step:
    """Where a run is: for progress bars and videos.

    Attributes
    ----------
    stage : str
        What is being done.
    recording_s : float
        Time in the recording.
    window : WindowReport or None
        The window that is done; None while refining.
    speed_deg_s : float
        The camera's speed at its end.
    R_wc : (3, 3) float64
        The camera's orientation where the window ends.
    panorama : (height, width) float32
        The map as it is now: a view that goes on changing.
    """

    stage: str
    recording_s: float
    window: WindowReport | None
    speed_deg_s: float
    R_wc: npt.NDArray[np.float64]
    panorama: npt.NDArray[np.float32]


OnStep = Callable[[Step], None]


class Slam:
    """Estimates the orientation of a rotating event camera over time, and a panoramic map.

    Parameters
    ----------
    config : Config, optional
        All settings.

    Examples
    --------
    >>> from cmaxslam_fbp import Slam, open_recording                       # doctest: +SKIP
    >>> result = Slam().run(open_recording("boxes_rotation.bag"))           # doctest: +SKIP
    >>> result.trajectory().rotation_at(t_ns)                               # doctest: +SKIP
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()

    def run(
        self,
        recording: Recording,
        *,
        start_s: float | None = None,
        duration_s: float | None = None,
        refine: bool = False,
        on_step: OnStep | None = None,
    ) -> SlamResult:
        """Process a recording, or a range of it; Ctrl-C ends the work early and keeps what there is.

        Parameters
        ----------
        recording : Recording
            With a calibrated camera.
        start_s, duration_s : float, optional
            Range in seconds from the first event.
        refine : bool
            After the first pass, adjust all windows against the whole map, until they do not move any more.
        on_step : callable, optional
            Called with a `Step` after each window.
        """
        began = time.perf_counter()
        run = _Run(self.config, recording, start_s, duration_s, on_step or (lambda step: None))
        interrupted = False
        refinements: list[float] = []
        try:
            run.first_pass()
        except KeyboardInterrupt:
            interrupted = True
        first_pass_s = time.perf_counter() - began
        try:
            if refine and not interrupted:
                run.refine(refinements)
        except KeyboardInterrupt:
            interrupted = True
        return run.result(began, first_pass_s, refinements, interrupted)


class _Run:
    """The state of one run."""

    def __init__(
        self, config: Config, recording: Recording, start_s: float | None, duration_s: float | None, on_step: OnStep
    ) -> None:
        self._config, self._recording, self._on_step = config, recording, on_step
        self._range = start_s, duration_s
        camera = recording.require_camera()
        self._estimator = VelocityEstimator(camera, config.frontend)
        self._backend = Backend(config.backend, camera)
        self._stream: EventStream = recording.chunks(start_s, duration_s)
        self._feed: Feed | None = None
        self._events = 0
        self._start_ns = self._end_ns = 0

    def first_pass(self) -> None:
        """Follow the camera through the recording, frontend and backend side by side."""
        with Feed(self._stream, self._estimator) as feed:
            self._feed = feed
            for window in self._windows(feed.chunks(), count=True):
                start_ns = window.start_ns if self._backend.spline is None else self._backend.spline.end_ns
                velocities = feed.velocities_until(min(start_ns, window.start_ns), window.end_ns)
                if velocities is None:
                    raise RecordingError(
                        f"{self._recording.path}: no packet of events gave a velocity; "
                        f"{self._events:,} events are too few, or they do not move"
                    )
                report = self._backend.process(window, velocities)
                speed_deg_s = float(np.degrees(np.linalg.norm(velocities.omega_rad_s[-1])))
                self._tell("tracking", window, report, speed_deg_s)

    def refine(self, turns_deg: list[float]) -> None:
        """Adjust all windows against the map of the whole recording, until they hardly turn any more."""
        for number in range(self._config.backend.max_refinements):
            stage = f"refinement {number + 1}"
            for window, _ in self._paired(self._backend.rebuild_map):
                self._tell(f"{stage}: map", window)
            turns = []
            for window, turn in self._paired(self._backend.readjust):
                turns.append(turn or 0.0)
                self._tell(stage, window)
            turns_deg.append(float(np.degrees(np.sqrt(np.mean(np.square(turns))))))
            if turns_deg[-1] < _REFINED_DEG:
                break
        for _ in self._paired(self._backend.rebuild_map):
            pass

    def _paired(
        self, work: Callable[[Iterator[Window]], Iterator[float | None]]
    ) -> Iterator[tuple[Window, float | None]]:
        """Run a pass over the windows; yield each window with what the pass says of it."""
        latest: list[Window] = []

        def seen() -> Iterator[Window]:
            for window in self._windows(self._recording.chunks(*self._range)):
                latest[:] = [window]
                yield window

        for answer in work(seen()):
            yield latest[0], answer

    def _windows(self, chunks: Iterator[Events] | EventStream, *, count: bool = False) -> Iterator[Window]:
        """Cut events into windows, and count them."""

        def counted() -> Iterator[Events]:
            for events in chunks:
                if count and len(events):
                    if self._events == 0:
                        self._start_ns = int(events.t_ns[0])
                    self._end_ns = int(events.t_ns[-1])
                    self._events += len(events)
                yield events

        return cut_into_windows(counted(), self._recording.sensor_size, self._config.backend)

    def _tell(self, stage: str, window: Window, report: WindowReport | None = None, speed_deg_s: float = 0.0) -> None:
        """Report a step."""
        assert self._backend.spline is not None
        rotation = self._backend.spline.rotations_at(window.next_ns)
        recording_s = (window.next_ns - self._start_ns) / NS_PER_S
        self._on_step(Step(stage, recording_s, report, speed_deg_s, rotation, self._backend.map.image))

    def result(self, began: float, first_pass_s: float, refinements: list[float], interrupted: bool) -> SlamResult:
        """Return what there is."""
        backend, feed = self._backend, self._feed
        if backend.spline is None or feed is None:
            if interrupted:
                raise KeyboardInterrupt  # nothing has been computed yet
            raise RecordingError(f"{self._recording.path} has no events to process")
        now = time.perf_counter()
        end_ns = min(self._end_ns, backend.spline.end_ns)
        result = SlamResult(
            spline=backend.spline,
            panorama=backend.map.image,
            velocities=feed.estimates,
            windows=backend.reports,
            events=self._events,
            start_ns=self._start_ns,
            end_ns=end_ns,
            timing=Timing(
                now - began,
                feed.busy_s,
                sum(window.seconds for window in backend.reports),
                now - began - first_pass_s if refinements else 0.0,
            ),
            refinements=refinements,
            interrupted=interrupted,
        )
        result.warnings.extend(self._warnings(result))
        return replace(result, evaluation=self._evaluate(result))

    def _warnings(self, result: SlamResult) -> list[str]:
        lines = self._stream.defects.describe()
        if result.lost_windows:
            first = next(window for window in result.windows if window.tracking.value == "lost")
            lines.append(
                f"tracking was lost in {result.lost_windows} of {len(result.windows)} windows, first at "
                f"{(first.start_ns - result.start_ns) / NS_PER_S:.2f} s; there the trajectory is the frontend's"
            )
        if result.interrupted:
            lines.append(f"the run was interrupted at {result.duration_s:.2f} s of the recording")
        return lines

    def _evaluate(self, result: SlamResult) -> Evaluation | None:
        """Return the errors against the recording's reference, where it has one that overlaps."""
        poses = self._recording.ground_truth
        if poses is None:
            return None
        try:
            return evaluate(
                result.trajectory(),
                poses,
                origin_ns=result.start_ns,
                reference_velocities=self._recording.gyroscope,
            )
        except TrajectoryError as error:
            result.warnings.append(f"no errors against the reference: {error}")
            return None
