"""One run of the SLAM: its state, and what is done to a recording, pass by pass."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.backend import Backend
from cmaxslam_fbp.backend.hand_adjustment import HandHeld
from cmaxslam_fbp.backend.hand_refinement import STAGES, HandRefinement
from cmaxslam_fbp.backend.hand_tracking import HandTracker
from cmaxslam_fbp.backend.parallax_evidence import LEAST_PARALLAX_DEG, ParallaxEvidence
from cmaxslam_fbp.backend.tracking import WindowReport
from cmaxslam_fbp.backend.window import Window, cut_into_windows
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import RecordingError, TrajectoryError
from cmaxslam_fbp.evaluation import Evaluation, evaluate, event_area
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.filters import EventFilter
from cmaxslam_fbp.events.passages import LONGEST_NS
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.event_pairs import find_pairs
from cmaxslam_fbp.intensity.event_sample import EventSample
from cmaxslam_fbp.intensity.pixel_choice import PixelChoice
from cmaxslam_fbp.io.recording import EventStream, Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.feed import Feed
from cmaxslam_fbp.pipeline.gaps import RunClock, Stretch
from cmaxslam_fbp.pipeline.result import SlamResult, Timing
from cmaxslam_fbp.pipeline.run_warnings import warnings_of
from cmaxslam_fbp.pipeline.step import OnStep, Step
from cmaxslam_fbp.pipeline.time_lapse import LapseControl
from cmaxslam_fbp.pipeline.trust import mark_windows, unexplained_motion

_CROSSING_PX = 7.0  # of motion, by when a blurred edge has passed a pixel, also one near the centre of a roll
_SLOWEST = 4.0  # times `passage_s` that a passage lasts at most
# The brightness is made of at most so many events, for each pixel per pixel of the map; of a sensor with more pixels
# than these of fewer, since its tables need the memory.
_PAINTED_EVENTS, _PAINTED_PIXELS = 8_000_000, 640 * 480
_PHOTOMETRIC_EVENTS = 3_000_000  # of more, those of a part of the sensor's pixels: each pair takes some 200 bytes


class SlamRun:
    """The state of one run."""

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
        self._keep_ns, self._kept = round(keep_events_s * NS_PER_S), Events.empty()
        self._range = start_s, duration_s
        camera = recording.require_camera()
        self._reference_faults = recording.check_reference()  # now, so that nothing is lost by it at the end
        self._estimator = VelocityEstimator(camera, config.frontend)
        self._backend = Backend(config.backend, camera)
        self._stream: EventStream = recording.chunks(start_s, duration_s)
        self._control = LapseControl(camera, config)
        self._clock = self._new_clock()
        self._filter = self._new_filter()
        self._sample: EventSample | None = None
        if config.intensity.enabled:
            size = recording.sensor_size
            room = min(_PAINTED_PIXELS / (size.width * size.height), 1.0)
            self._sample = EventSample(size, round(_PAINTED_EVENTS * room) * config.intensity.scale)
        self._feed: Feed | None = None
        self._events = 0
        self._start_ns = self._end_ns = 0  # on the clock of the run
        self._began = time.perf_counter()
        self._passages_s = 0.0
        self._refining_since: float | None = None
        self._evidence = ParallaxEvidence()
        self._parallax_deg: float | None = None
        self._tracker: HandTracker | None = None
        if config.backend.translation in ("sphere", "scene"):
            self._tracker = HandTracker(camera, config.backend.translation, self._backend.state.map.size)
        self._hand_held: HandHeld | None = None
        self._last_window: Window | None = None
        self._photometric_errors: tuple[float, float] | None = None
        self._hand_held_problem: str | None = None

    def first_pass(self) -> None:
        """Follow the camera through the recording, frontend and backend side by side."""
        watch = None if self._sample is None else self._sample.watch
        events = self._clock.shorten(self._filter.run(self._stream, self._stream.defects, watch=watch))
        see = None
        if self._lapses:
            events, see = self._control.run(events), self._control.see
        with Feed(events, self._estimator, see) as feed, self._reading():
            self._feed = feed
            for window in self._timed(self._windows(self._counted(feed.chunks()))):
                spline = self._backend.state.spline
                start_ns = window.start_ns if spline is None else min(spline.end_ns, window.start_ns)
                velocities = feed.velocities_until(start_ns, window.end_ns)
                if velocities is None:
                    raise RecordingError(
                        f"{self._recording.path}: no packet of events gave a velocity; "
                        f"{self._events:,} events are too few, or they do not move"
                    )
                is_still = feed.lacks_evidence(window.start_ns, window.end_ns)
                report = self._backend.process(window, velocities, is_still=is_still)
                self._look_for_parallax(window, report)
                lapse = self._control.lapse.lapse_at(window.end_ns)
                speed_deg_s = float(np.degrees(np.linalg.norm(velocities.omega_rad_s[-1]))) / lapse
                self._tell("tracking", window, report, speed_deg_s)

    def _look_for_parallax(self, window: Window, report: WindowReport) -> None:
        """Keep what shows whether there is a translation; follow it where that is asked for."""
        passages = window.leaving if report.tracking.is_in_map else Events.empty()
        self._evidence.add(passages)
        if self._tracker is not None:
            self._tracker.add(passages)
            self._tracker.follow(self._backend.state.require_spline(), window.start_ns)

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
        for stage, window in self._backend.refine(self._windows_again):
            self._tell(stage, window)

    def refine_photometric(self) -> None:
        """Adjust control rotations and gradient map together to what events in a row of a pixel say."""
        from cmaxslam_fbp.intensity.photometric_refinement import PhotometricRefinement

        state, camera = self._backend.state, self._recording.require_camera()
        spline, reports = state.require_spline(), list(state.reports.values())
        starts = np.array([report.start_ns for report in reports], np.int64)
        is_in_map = np.array([report.tracking.is_in_map for report in reports])
        choose = PixelChoice(camera.seen_pixels(), _PHOTOMETRIC_EVENTS / max(self._events, 1))
        chunks = self._events_again()
        events = Events.concatenate(choose(chunk).between(spline.start_ns, spline.end_ns + 1) for chunk in chunks)
        window = np.maximum(np.searchsorted(starts, events.t_ns, side="right") - 1, 0)
        tracked = is_in_map[window]
        pairs = find_pairs(events[tracked], np.cumsum(~is_in_map)[window[tracked]], camera.bearings())
        projection = Equirectangular(*state.map.image.shape[::-1])
        refinement = PhotometricRefinement(pairs, spline, projection, camera)
        last = self._last_window
        for number, turn in enumerate(refinement.run(), 1):
            state.spline = refinement.spline
            self._backend.refinement.turns_deg.append(turn)
            self._photometric_errors = refinement.errors[0], refinement.errors[-1]
            if last is not None:
                self._tell(f"photometric refinement {number}", last)
        for rebuilt in self._backend.refinement.rebuild_map(self._windows_again()):
            self._tell("last map", rebuilt)

    def has_parallax(self) -> bool:
        """Tell, after the first pass, whether the camera has moved, and take over its translation where it is known.

        Where it has not, a rotation alone is more precise, and stays.
        """
        spline = self._backend.state.require_spline()
        self._parallax_deg = self._evidence.parallax_deg(self._recording.require_camera(), spline)
        moves = self._parallax_deg is None or self._parallax_deg >= LEAST_PARALLAX_DEG
        if self._tracker is None:
            return moves and self._parallax_deg is not None
        found = self._tracker.finish(spline)
        if found is None:
            self._hand_held_problem = "too few events were tracked for --hand-held: the result is a rotation alone"
            return False
        if not moves:
            self._hand_held_problem = "there is no parallax that a rotation would not explain: the result is one alone"
            return False
        self._take(found, self._tracker.panorama)
        return True

    def keep_translation(self) -> None:
        """Take over what is known of a translation where a first pass was ended early."""
        if self._tracker is not None and self._hand_held is None:
            self.has_parallax()

    def refine_hand_held(self) -> None:
        """Adjust rotation, translation and distances to all events at once."""
        self._refining_since = time.perf_counter()
        state, window, parts = self._backend.state, None, [Events.empty()]
        for window in self._windows_again():
            if state.tracking(window).is_in_map:
                parts.append(window.leaving)
        assert window is not None
        spline = state.require_spline()
        passages = Events.concatenate(parts).between(spline.start_ns, spline.end_ns)
        model: Literal["sphere", "scene"] = "sphere" if self._config.backend.translation == "sphere" else "scene"
        start, stages = self._hand_held, STAGES[1:]  # what was tracked has the coarse map behind it
        if start is None:
            start, stages = HandHeld.of_rotation(spline), STAGES
        refinement = HandRefinement(self._recording.require_camera(), passages, start, model, stages)
        for stage in refinement.run():
            self._tell(stage, window)
        found = refinement.result()
        self._take(found, refinement.panorama(found, state.map.size))
        self._tell("last map", window)

    def _take(self, found: HandHeld, panorama: SingleArray) -> None:
        """Take over a motion with its map."""
        state = self._backend.state
        state.map = state.map.emptied()
        state.map.image += panorama
        state.spline, self._hand_held, self._parallax_deg = found.rotations, found, found.parallax_deg

    def _windows_again(self) -> Iterator[Window]:
        """Start a new pass over the windows."""
        return self._windows(self._events_again())

    def _new_clock(self) -> RunClock:
        return RunClock(round(self._config.backend.stride_s * NS_PER_S), self._control.lapse)

    @property
    def _lapses(self) -> bool:
        """Whether slow motion passes faster: not with a translation, nor while somebody waits for poses."""
        translation, live = self._config.backend.translation, self._recording.live
        return self._config.events.time_lapse > 1 and translation == "none" and live is None

    def _new_filter(self) -> EventFilter:
        seen = self._recording.require_camera().seen_pixels()
        return EventFilter(self._config.events, self._recording.sensor_size, seen)

    def _events_again(self) -> Iterator[Events]:
        """Return the events that all stages work on, of a new pass over the recording, on the clock of the run."""
        stream, lapse = self._recording.chunks(*self._range), self._control.lapse
        for events in self._new_clock().shorten(self._new_filter().run(stream, stream.defects)):
            yield events if lapse.is_plain else replace(events, t_ns=lapse.to_run(events.t_ns))

    def _timed(self, windows: Iterator[Window]) -> Iterator[Window]:
        """Take the time that windows need, passages included."""
        began = time.perf_counter()
        for window in windows:
            self._passages_s += time.perf_counter() - began
            yield window
            began = time.perf_counter()

    def _counted(self, chunks: Iterable[Events]) -> Iterator[Events]:
        """Count the events that come by; to wait for them is not the time of those who do."""
        began = time.perf_counter()
        for events in chunks:
            self._passages_s -= time.perf_counter() - began
            if len(events):
                if self._events == 0:
                    self._start_ns = int(events.t_ns[0])
                self._end_ns = int(events.t_ns[-1])
                self._events += len(events)
                if self._keep_ns:
                    self._kept = Events.concatenate([self._kept, events])
            yield events
            began = time.perf_counter()

    def _windows(self, chunks: Iterable[Events]) -> Iterator[Window]:
        """Cut events into windows."""
        return cut_into_windows(chunks, self._recording.sensor_size, self._config.backend, self._longest_passage_ns)

    def _longest_passage_ns(self, t_ns: int) -> int:
        """Return how long an edge may take to pass a pixel: the slower the image moves, the longer."""
        shortest_s = self._config.backend.passage_s
        px_per_rad = self._recording.require_camera().px_per_rad()
        speed_px_s = None if self._feed is None else self._feed.speed_at(t_ns, px_per_rad)
        if speed_px_s is None:
            return round(shortest_s * NS_PER_S)
        crossing_s = _CROSSING_PX / max(speed_px_s, 1e-9)
        return min(round(min(max(crossing_s, shortest_s), _SLOWEST * shortest_s) * NS_PER_S), LONGEST_NS)

    def _tell(self, stage: str, window: Window, report: WindowReport | None = None, speed_deg_s: float = 0.0) -> None:
        """Report a step."""
        self._last_window = window
        state = self._backend.state
        self._kept = self._kept.between(window.end_ns - self._keep_ns, self._end_ns + 1)
        rotation = state.require_spline().rotations_at(window.next_ns)
        # A translation that is followed takes the place of the whole rotation at the end of the first pass.
        is_final = self._refining_since is None and self._tracker is None
        settled_ns = self._backend.settled_ns if is_final else None
        if settled_ns is not None:
            settled_ns = int(self._clock.to_recording(settled_ns))
        if settled_ns is not None and self._recording.live is not None:
            self._recording.live.settle(settled_ns)
        start_ns, next_ns = self._clock.to_recording([self._start_ns, window.next_ns]).tolist()
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
                partial(self._last_events, window.end_ns),
                self._stretches,
                self.result,
            )
        )

    def _last_events(self, end_ns: int) -> Events:
        """Return what is kept of the events before the end of a window."""
        events = self._kept.between(end_ns - self._keep_ns, end_ns)
        return replace(events, t_ns=self._clock.to_recording(events.t_ns))

    @property
    def has_result(self) -> bool:
        """Whether a window is done."""
        return bool(self._backend.state.reports)

    def _stretches(self) -> tuple[Stretch, ...]:
        spline = self._backend.state.require_spline()
        path = None if self._hand_held is None else self._hand_held.positions
        return self._clock.stretches(spline, self._start_ns, min(self._end_ns, spline.end_ns), path)

    def result(self) -> SlamResult:
        """Return what there is."""
        state, feed = self._backend.state, self._feed
        if state.spline is None or feed is None:
            raise RecordingError(f"{self._recording.path} has no events to process")
        now = time.perf_counter()
        stretches = self._stretches()
        velocities = feed.velocities.rows()
        # What no rotation explains is not held against a run that has a translation.
        residuals = [] if self._hand_held is not None else list(feed.residuals)
        windows = mark_windows(list(state.reports.values()), residuals)
        if len(stretches) > 1 or not self._control.lapse.is_plain:
            velocities = velocities.copy()
            velocities["omega_rad_s"] /= self._control.lapse.lapses_at(velocities["t_ns"])[:, None]
            velocities["t_ns"] = self._clock.to_recording(velocities["t_ns"])
            windows = [self._on_recording_clock(window) for window in windows]
        result = SlamResult(
            stretches=stretches,
            panorama=state.map.image,
            event_area=event_area(state.map.image, state.map.looks),
            velocities=velocities,
            windows=windows,
            events=self._events,
            timing=Timing(
                now - self._began,
                feed.busy_s,
                self._passages_s,
                sum(window.seconds for window in windows),
                0.0 if self._refining_since is None else now - self._refining_since,
            ),
            refinements=list(self._backend.refinement.turns_deg),
            photometric_errors=self._photometric_errors,
            hand_held=self._hand_held,
            parallax_deg=self._parallax_deg,
            scene_distance_m=self._config.backend.scene_distance_m,
            hot_pixels=self._filter.hot_pixels,
            sample=self._sample,
            unexplained_motion=unexplained_motion(residuals),
            drowned=len(feed.drowned) / max(len(feed.drowned) + len(feed.residuals), 1),
            live=None if self._recording.live is None else self._recording.live.figures(),
        )
        result.warnings.extend(self._warnings(result))
        return result

    def _on_recording_clock(self, window: WindowReport) -> WindowReport:
        start_ns, end_ns = self._clock.to_recording([window.start_ns, window.end_ns]).tolist()
        return replace(window, start_ns=start_ns, end_ns=end_ns)

    def _warnings(self, result: SlamResult) -> list[str]:
        lines = [*self._stream.defects.describe(), *self._reference_faults]
        if self._recording.live is not None:
            lines += self._recording.live.describe()
        if self._hand_held_problem is not None:
            lines.append(self._hand_held_problem)
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
