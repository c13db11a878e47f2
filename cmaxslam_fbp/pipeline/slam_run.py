"""One run of the SLAM: its state, and what is done to a recording, pass by pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.tracking import WindowReport
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import RecordingError, TrajectoryError
from cmaxslam_fbp.evaluation import Evaluation, evaluate, event_area
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.frontend.estimator import ENOUGH_OF_THINNED, VelocityEstimator
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.event_pairs import find_pairs
from cmaxslam_fbp.intensity.event_sample import PixelChoice
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.gaps import Stretch
from cmaxslam_fbp.pipeline.memory import give_back_memory
from cmaxslam_fbp.pipeline.result import SlamResult, Timing
from cmaxslam_fbp.pipeline.run_events import RunEvents
from cmaxslam_fbp.pipeline.run_warnings import warnings_of
from cmaxslam_fbp.pipeline.step import OnStep, Step
from cmaxslam_fbp.pipeline.translation import RunTranslation
from cmaxslam_fbp.pipeline.trust import mark_windows, unexplained_motion

_FEWEST_LOOKS = 10  # at packets, of which shares are told: one or two say little of a recording
_PHOTOMETRIC_EVENTS = 3_000_000  # of more, those of a part of the sensor's pixels: each pair takes some 200 bytes


class SlamRun:
    """The state of one run: its events, the frontend's feed, the backend, and a `translation` where there is one."""

    def __init__(
        self,
        config: Config,
        recording: Recording,
        start_s: float | None,
        duration_s: float | None,
        on_step: OnStep,
        keep_events_s: float,
    ) -> None:
        self._config, self._recording, self._on_step = config, recording, on_step
        camera = recording.require_camera()
        self._reference_faults = recording.check_reference()  # now, so that nothing is lost by it at the end
        give_back_memory()  # what reading it took
        self._events = RunEvents(config, recording, start_s, duration_s, keep_events_s)
        self._estimator = VelocityEstimator(camera, config.frontend, self._events.is_thinned)
        self._backend = Backend(config.backend, camera)
        self.translation = RunTranslation(config.backend, camera, self._backend.state)
        self._feed: Feed | None = None
        self._last_window: Window | None = None
        self._began = time.perf_counter()
        self._refining_since: float | None = None
        self._photometric_errors: tuple[float, float] | None = None

    def first_pass(self) -> None:
        """Follow the camera through the recording, frontend and backend side by side."""
        events, see = self._events.chunks()
        with Feed(events, self._estimator, see) as feed, self._reading():
            self._feed = feed
            for window in self._events.windows(feed):
                spline = self._backend.state.spline
                start_ns = window.start_ns if spline is None else min(spline.end_ns, window.start_ns)
                velocities = feed.velocities_until(start_ns, window.end_ns)
                if velocities is None:
                    raise RecordingError(
                        f"{self._recording.path}: no packet of events gave a velocity; "
                        f"{self._events.count:,} events are too few, or they do not move"
                    )
                is_still = feed.lacks_evidence(window.start_ns, window.end_ns)
                enough = ENOUGH_OF_THINNED if self._events.is_thinned(window.middle_ns) else 1.0
                report = self._backend.process(window, velocities, is_still=is_still, enough=enough)
                self.translation.look(window, report)
                lapse = self._events.lapse.lapse_at(window.end_ns)
                speed_deg_s = float(np.degrees(np.linalg.norm(velocities.omega_rad_s[-1]))) / lapse
                self._tell("tracking", window, report, speed_deg_s)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """End a stream where its work ends: nobody waits for more of it."""
        try:
            yield
        finally:
            if self._recording.live is not None:
                self._recording.live.stop()

    def refine(self) -> None:
        """Adjust all windows against the map of the whole recording."""
        self._refining_since = time.perf_counter()
        for stage, window in self._backend.refine(self._events.windows_again):
            self._tell(stage, window)

    def refine_photometric(self) -> None:
        """Adjust control rotations and gradient map together to what events in a row of a pixel say."""
        from cmaxslam_fbp.intensity.photometric_refinement import PhotometricRefinement

        state, camera = self._backend.state, self._recording.require_camera()
        spline = state.require_spline()
        choose = PixelChoice(camera.seen_pixels(), _PHOTOMETRIC_EVENTS / max(self._events.count, 1))
        chunks = self._events.again()
        events = Events.concatenate(choose(chunk).between(spline.start_ns, spline.end_ns + 1) for chunk in chunks)
        pairs = find_pairs(*_tracked(events, list(state.reports.values())), camera.bearings())
        projection = Equirectangular(*state.map.image.shape[::-1])
        refinement = PhotometricRefinement(pairs, spline, projection, camera)
        last = self._last_window
        for number, turn in enumerate(refinement.run(), 1):
            state.spline = refinement.spline
            self._backend.refinement.turns_deg.append(turn)
            self._photometric_errors = refinement.errors[0], refinement.errors[-1]
            if last is not None:
                self._tell(f"photometric refinement {number}", last)
        for rebuilt in self._backend.refinement.rebuild_map(self._events.windows_again()):
            self._tell("last map", rebuilt)

    def refine_hand_held(self) -> None:
        """Adjust rotation, translation and distances to all events at once."""
        self._refining_since = time.perf_counter()
        for stage, window in self.translation.refine(self._events.windows_again()):
            self._tell(stage, window)

    def _tell(self, stage: str, window: Window, report: WindowReport | None = None, speed_deg_s: float = 0.0) -> None:
        """Report a step."""
        self._last_window = window
        state = self._backend.state
        self._events.forget(window.end_ns)
        rotation = state.require_spline().rotations_at(window.next_ns)
        # A translation that is followed takes the place of the whole rotation at the end of the first pass.
        is_final = self._refining_since is None and not self.translation.is_followed
        settled_ns = self._backend.settled_ns if is_final else None
        if settled_ns is not None:
            settled_ns = int(self._events.clock.to_recording(settled_ns))
        if settled_ns is not None and self._recording.live is not None:
            self._recording.live.settle(settled_ns)
        start_ns, next_ns = self._events.clock.to_recording([self._events.start_ns, window.next_ns]).tolist()
        recording_s = (next_ns - start_ns) / NS_PER_S
        self._on_step(
            Step(
                stage,
                recording_s,
                report,
                speed_deg_s,
                rotation,
                state.map.image,
                settled_ns,
                partial(self._events.last, window.end_ns),
                self._stretches,
                self.result,
            )
        )

    @property
    def has_result(self) -> bool:
        """Whether a window is done."""
        return bool(self._backend.state.reports)

    def _stretches(self) -> tuple[Stretch, ...]:
        spline = self._backend.state.require_spline()
        events, found = self._events, self.translation.found
        path = None if found is None else found.positions
        return events.clock.stretches(spline, events.start_ns, min(events.end_ns, spline.end_ns), path)

    def result(self) -> SlamResult:
        """Return what there is."""
        state, feed, events, translation = self._backend.state, self._feed, self._events, self.translation
        if state.spline is None or feed is None:
            raise RecordingError(f"{self._recording.path} has no events to process")
        now = time.perf_counter()
        stretches = self._stretches()
        velocities = feed.velocities.rows()
        # What no rotation explains is not held against a run that has a translation.
        residuals = [] if translation.found is not None else list(feed.residuals)
        windows = mark_windows(list(state.reports.values()), residuals)
        if len(stretches) > 1 or not events.lapse.is_plain:
            velocities = velocities.copy()
            velocities["omega_rad_s"] /= events.lapse.lapses_at(velocities["t_ns"])[:, None]
            velocities["t_ns"] = events.clock.to_recording(velocities["t_ns"])
            windows = [self._on_recording_clock(window) for window in windows]
        result = SlamResult(
            stretches=stretches,
            panorama=state.map.image,
            event_area=event_area(state.map.image, state.map.looks),
            velocities=velocities,
            windows=windows,
            events=events.count + events.lone.dropped,
            timing=Timing(
                now - self._began,
                feed.busy_s,
                events.passages_s,
                sum(window.seconds for window in windows),
                0.0 if self._refining_since is None else now - self._refining_since,
            ),
            refinements=list(self._backend.refinement.turns_deg),
            photometric_errors=self._photometric_errors,
            hand_held=translation.found,
            parallax_deg=translation.parallax_deg,
            scene_distance_m=self._config.backend.scene_distance_m,
            hot_pixels=events.filter.hot_pixels,
            lone_events=events.lone.dropped,
            sample=events.sample,
            unexplained_motion=unexplained_motion(residuals),
            drowned=len(feed.drowned) / max(len(feed.drowned) + len(feed.residuals), _FEWEST_LOOKS),
            live=None if self._recording.live is None else self._recording.live.figures(),
        )
        result.warnings.extend(self._warnings(result))
        return result

    def _on_recording_clock(self, window: WindowReport) -> WindowReport:
        start_ns, end_ns = self._events.clock.to_recording([window.start_ns, window.end_ns]).tolist()
        return replace(window, start_ns=start_ns, end_ns=end_ns)

    def _warnings(self, result: SlamResult) -> list[str]:
        lines = [*self._events.stream.defects.describe(), *self._reference_faults]
        if self._recording.live is not None:
            lines += self._recording.live.describe()
        if self.translation.problem is not None:
            lines.append(self.translation.problem)
        return lines + warnings_of(result, self._recording.sensor_size)

    def evaluated(self, result: SlamResult) -> SlamResult:
        """Return a result with its errors, where the recording has a reference."""
        if result.interrupted:
            result.warnings.append(f"the run was interrupted at {result.duration_s:.2f} s of the recording")
        return replace(result, evaluation=self._evaluate(result))

    def _evaluate(self, result: SlamResult) -> Evaluation | None:
        """Return the errors against the recording's reference, where it has one that overlaps."""
        poses = self._recording.ground_truth
        if poses is None:
            return None
        give_back_memory()
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


def _tracked(events: Events, reports: list[WindowReport]) -> tuple[Events, IntArray]:
    """Return the events of windows that the map has, and for each how many others there were before it."""
    starts = np.array([report.start_ns for report in reports], np.int64)
    is_in_map = np.array([report.tracking.is_in_map for report in reports])
    window = np.maximum(np.searchsorted(starts, events.t_ns, side="right") - 1, 0)
    tracked = is_in_map[window]
    return events[tracked], np.cumsum(~is_in_map)[window[tracked]]
