"""The SLAM: recording, frontend, backend, result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.backend.window import Window, cut_into_windows
from cmaxslam_fbp.choices import MODELS
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import ConfigError, RecordingError, TrajectoryError
from cmaxslam_fbp.evaluation import Evaluation, evaluate
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.filters import filter_events
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.io.recording import EventStream, Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.result import SlamResult, Timing


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
        model = self.config.frontend.model
        if MODELS[model].kind != "angular":
            angular = ", ".join(name for name in MODELS.names() if MODELS[name].kind == "angular")
            raise ConfigError(
                f"frontend.model: {model} has no angular velocity, which a rotation is made of; choose {angular}, or "
                "use `cmaxslam-fbp velocity`"
            )

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
        try:
            run.first_pass()
        except KeyboardInterrupt:
            interrupted = True
        first_pass_s = time.perf_counter() - began
        try:
            if refine and not interrupted:
                run.refine()
        except KeyboardInterrupt:
            interrupted = True
        return run.result(began, first_pass_s, interrupted)


class _Run:
    """The state of one run."""

    def __init__(
        self, config: Config, recording: Recording, start_s: float | None, duration_s: float | None, on_step: OnStep
    ) -> None:
        self._config, self._recording, self._on_step = config, recording, on_step
        self._range = start_s, duration_s
        camera = recording.require_camera()
        self._reference_faults = recording.check_reference()  # now, so that nothing is lost by it at the end
        self._estimator = VelocityEstimator(camera, config.frontend)
        self._backend = Backend(config.backend, camera)
        self._stream: EventStream = recording.chunks(start_s, duration_s)
        self._feed: Feed | None = None
        self._events = 0
        self._start_ns = self._end_ns = 0

    def first_pass(self) -> None:
        """Follow the camera through the recording, frontend and backend side by side."""
        with Feed(self._filtered(self._stream), self._estimator) as feed:
            self._feed = feed
            for window in self._windows(self._counted(feed.chunks())):
                spline = self._backend.state.spline
                start_ns = window.start_ns if spline is None else min(spline.end_ns, window.start_ns)
                velocities = feed.velocities_until(start_ns, window.end_ns)
                if velocities is None:
                    raise RecordingError(
                        f"{self._recording.path}: no packet of events gave a velocity; "
                        f"{self._events:,} events are too few, or they do not move"
                    )
                report = self._backend.process(window, velocities)
                speed_deg_s = float(np.degrees(np.linalg.norm(velocities.omega_rad_s[-1])))
                self._tell("tracking", window, report, speed_deg_s)

    def refine(self) -> None:
        """Adjust all windows against the map of the whole recording."""
        passes = self._backend.refine(lambda: self._windows(self._filtered(self._recording.chunks(*self._range))))
        for stage, window in passes:
            self._tell(stage, window)

    def _filtered(self, stream: EventStream) -> Iterator[Events]:
        """Return the events that all stages work on, of a pass over the recording."""
        return filter_events(stream, self._config.events, self._recording.sensor_size)

    def _counted(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Count the events that come by."""
        for events in chunks:
            if len(events):
                if self._events == 0:
                    self._start_ns = int(events.t_ns[0])
                self._end_ns = int(events.t_ns[-1])
                self._events += len(events)
            yield events

    def _windows(self, chunks: Iterable[Events]) -> Iterator[Window]:
        """Cut events into windows."""
        return cut_into_windows(chunks, self._recording.sensor_size, self._config.backend)

    def _tell(self, stage: str, window: Window, report: WindowReport | None = None, speed_deg_s: float = 0.0) -> None:
        """Report a step."""
        state = self._backend.state
        rotation = state.require_spline().rotations_at(window.next_ns)
        recording_s = (window.next_ns - self._start_ns) / NS_PER_S
        self._on_step(Step(stage, recording_s, report, speed_deg_s, rotation, state.map.image))

    def result(self, began: float, first_pass_s: float, interrupted: bool) -> SlamResult:
        """Return what there is."""
        state, feed = self._backend.state, self._feed
        if state.spline is None or feed is None:
            if interrupted:
                raise KeyboardInterrupt  # nothing has been computed yet
            raise RecordingError(f"{self._recording.path} has no events to process")
        now, windows, refinements = (
            time.perf_counter(),
            list(state.reports.values()),
            self._backend.refinement.turns_deg,
        )
        result = SlamResult(
            spline=state.spline,
            panorama=state.map.image,
            velocities=feed.estimates,
            windows=windows,
            events=self._events,
            start_ns=self._start_ns,
            end_ns=min(self._end_ns, state.spline.end_ns),
            timing=Timing(
                now - began,
                feed.busy_s,
                sum(window.seconds for window in windows),
                now - began - first_pass_s if refinements else 0.0,
            ),
            refinements=refinements,
            interrupted=interrupted,
        )
        result.warnings.extend(self._warnings(result))
        return replace(result, evaluation=self._evaluate(result))

    def _warnings(self, result: SlamResult) -> list[str]:
        lines = [*self._stream.defects.describe(), *self._reference_faults]
        if result.lost_windows:
            first = next(window for window in result.windows if window.tracking is Tracking.LOST)
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
