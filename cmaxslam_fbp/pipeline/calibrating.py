"""From a recording without a calibration to its lens: events, passages, a scan over fields of view, adjustment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cmaxslam_fbp.backend.hand_refinement import without_hot_pixels
from cmaxslam_fbp.calibration.field_scan import (
    FIELDS_DEG,
    FieldCandidate,
    convert_lens,
    middle_camera,
    try_field_of_view,
)
from cmaxslam_fbp.calibration.gyroscope_focal import focal_by_gyroscope
from cmaxslam_fbp.calibration.image_travel import ImageTravel, image_travel
from cmaxslam_fbp.calibration.imu_alignment import ImuAlignment, align_gyroscope
from cmaxslam_fbp.calibration.lens_calibration import UNOBSERVED_FOCAL, LensCalibration, calibrate_lens, hold_lens
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.filters import EventFilter
from cmaxslam_fbp.events.passages import edge_passages, passages_for
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.slam import Slam
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_PASSAGES, _PIXELS = 300_000, 320 * 240  # that are adjusted to, every n-th of more; twice as many of a larger sensor
_MOST_OF_SCAN = 60_000  # of them by each lens of the scan
_FEWEST_PASSAGES = 5_000  # of which a lens can be told at all
_KEPT = 4_000_000  # passages in memory
_SCAN_S = 3.0
_MOST_FOLLOWED = 2_000_000  # events, by each lens of the scan
_TRACKED_S = 100_000.0  # passages per second, by which the whole recording is tracked
_THREADS = 2
_MAPS = (512, 1024, 2048, 4096)
_USUAL_FIELD_DEG = 56.0  # across: in the middle of those that are tried
_GYROSCOPE_ROUNDS, _AGREES = 5, 0.25  # at most; and the part of its deviation by which the focal length still changes
_PX_PER_PX = 0.8  # of the map that the whole recording is tracked with

OnStage = Callable[[str], None]


@dataclass(frozen=True)
class CalibrationGuess:
    """What a user knows of a lens: its model, a focal length or a field of view, and parameters that stay."""

    model: str = "plumb_bob"
    focal_px: float | None = None
    field_of_view_deg: float | None = None
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordingCalibration:
    """The lens of a recording, and how it was found.

    Attributes
    ----------
    lens : LensCalibration
    scan : tuple of FieldCandidate
        What each field of view led to; empty where the lens was given.
    passages : Events
        What the lens was adjusted to.
    travel : ImageTravel
        How far the image travelled over the sensor.
    imu : ImuAlignment or None
        How the gyroscope lies to the camera, where there is one.
    focal_by_gyroscope : bool
        Whether the focal length is the one at which rates agree with it, and not the contrast's.
    """

    lens: LensCalibration
    scan: tuple[FieldCandidate, ...]
    passages: Events
    travel: ImageTravel
    imu: ImuAlignment | None = None
    focal_by_gyroscope: bool = False


def calibrate(
    recording: Recording,
    guess: CalibrationGuess | None = None,
    config: Config | None = None,
    *,
    start_s: float | None = None,
    duration_s: float | None = None,
    on_stage: OnStage = lambda stage: None,
) -> RecordingCalibration:
    """Find the lens of a recording of a camera that only turns, from its events and the size of its sensor."""
    guess = guess or CalibrationGuess()
    work = _Calibration(recording, config or Config(), guess, (start_s, duration_s), on_stage)
    scan = tuple(work.scan())
    best = max(scan, key=lambda candidate: candidate.contrast)
    start = convert_lens(best.camera, guess.model)
    if guess.focal_px is not None and "focal" in guess.fixed:
        start = replace(start, fx=guess.focal_px, fy=guess.focal_px)
    middle = middle_camera(recording.sensor_size, start.fx)
    expected = replace(start, fy=start.fx, cx=middle.cx, cy=middle.cy, distortion=())
    return work.compared(work.by_contrast(start, expected, work.lens_beforehand()), scan)


def refine_calibration(
    recording: Recording,
    config: Config | None = None,
    *,
    start_s: float | None = None,
    duration_s: float | None = None,
    on_stage: OnStage = lambda stage: None,
) -> RecordingCalibration:
    """Adjust the calibration that a recording has a little."""
    camera = recording.require_camera()
    guess = CalibrationGuess(model=camera.distortion_model)
    work = _Calibration(recording, config or Config(), guess, (start_s, duration_s), on_stage)
    return work.compared(work.by_contrast(camera, camera, camera), ())


@dataclass(frozen=True)
class _Followed:
    """The motion of a recording as a lens shows it, the passages that go with it, and how far the image travels."""

    camera: Camera
    rotations: RotationSpline
    passages: Events
    travel: ImageTravel


@dataclass(frozen=True)
class _Adjusted:
    """A lens, the motion that it was adjusted along or held with, and the lens that was expected."""

    lens: LensCalibration
    followed: _Followed
    expected: Camera


class _Calibration:
    """The search for the lens of one recording, of which the range `seconds` is taken: a start and a duration."""

    def __init__(
        self,
        recording: Recording,
        config: Config,
        guess: CalibrationGuess,
        seconds: tuple[float | None, float | None],
        on_stage: OnStage,
    ) -> None:
        self._recording, self._config, self._guess = recording, config, guess
        self._seconds, self._on_stage = seconds, on_stage
        on_stage("passages of edges")
        self._size = recording.sensor_size
        self._passages = self._find_passages()

    def _events(self, start_s: float | None, duration_s: float | None) -> Iterator[Events]:
        """Yield the filtered events of a range."""
        stream = self._recording.chunks(start_s, duration_s)
        return EventFilter(self._config.events, self._size).run(stream, stream.defects)

    def _find_passages(self) -> Events:
        """Return the passages of edges, every n-th where memory would not hold them all."""
        backend = self._config.backend
        longest_ns = round((backend.passage_s or 0.05) * NS_PER_S)
        runs = edge_passages(self._events(*self._seconds), self._size, longest_ns)
        passages = at_most((passages_for(chunk, backend.passage_events, 0) for chunk in runs), _KEPT)
        if len(passages) < _FEWEST_PASSAGES:
            raise CalibrationError(
                f"{self._recording.path}: {len(passages):,} passages of edges are too few to tell a lens from; "
                "give --calib, or a longer recording"
            )
        return without_hot_pixels(passages, middle_camera(self._size, 1.0))

    def scan(self) -> Iterator[FieldCandidate]:
        """Follow the busiest seconds through lenses of several fields of view, or of the one that is known."""
        fields: tuple[float, ...] = FIELDS_DEG
        if self._guess.focal_px is not None:
            fields = (float(np.degrees(self._size.width / self._guess.focal_px)),)
        elif self._guess.field_of_view_deg is not None:
            fields = (self._guess.field_of_view_deg,)
        passages = self._passages
        t_s = (passages.t_ns - self._recording.start_ns) / NS_PER_S
        counts, edges = np.histogram(t_s, np.arange(t_s[0], max(t_s[-1], t_s[0] + _SCAN_S) + 0.5, 0.5))
        busy = np.convolve(counts, np.ones(min(round(_SCAN_S / 0.5), len(counts))), "valid")
        events = at_most(self._events(float(edges[int(np.argmax(busy))]), _SCAN_S), _MOST_FOLLOWED)
        part = every_nth(passages.between(int(events.t_ns[0]), int(events.t_ns[-1])), _MOST_OF_SCAN)
        judge = partial(try_field_of_view, events, part, self._size)
        with ThreadPoolExecutor(_THREADS) as pool:  # compiled loops release the GIL
            for number, candidate in enumerate(pool.map(judge, fields), 1):
                self._on_stage(f"field of view {number} of {len(fields)}")
                yield candidate

    def lens_beforehand(self) -> Camera:
        """Return what a lens is taken for where the events tell nothing: what the user said, or a usual field."""
        guess, is_fisheye = self._guess, self._guess.model == "equidistant"
        field = np.radians(guess.field_of_view_deg or _USUAL_FIELD_DEG)
        focal_px = guess.focal_px or self._size.width / (field if is_fisheye else 2 * np.tan(field / 2))
        model = "equidistant" if is_fisheye else "plumb_bob"
        return replace(middle_camera(self._size, float(focal_px)), distortion_model=model)

    def _follow(self, camera: Camera) -> _Followed:
        """Track the whole recording through a first lens."""
        self._on_stage("tracking")
        config = self._config
        width = min(_MAPS, key=lambda width: abs(np.log(width / (2 * np.pi * camera.fx * _PX_PER_PX))))
        most_s = min(config.backend.most_passages_s, _TRACKED_S)
        backend = {"panorama_size": (width, width // 2), "most_passages_s": most_s, "translation": "none"}
        changes = {
            "backend": config.backend.model_copy(update=backend),
            "frontend": config.frontend.model_copy(update={"grid": "sensor"}),
            "events": config.events.model_copy(update={"time_lapse": 1.0}),  # the lens is adjusted along the spline
            "intensity": config.intensity.model_copy(update={"enabled": False}),
        }
        start_s, duration_s = self._seconds
        recording = self._recording.with_camera(camera)
        tracked = Slam(config.model_copy(update=changes)).run(recording, start_s=start_s, duration_s=duration_s)
        stretch = max(tracked.stretches, key=lambda stretch: stretch.end_ns - stretch.start_ns)
        spline = stretch.own_spline()
        inside = self._passages.between(stretch.start_ns, min(stretch.end_ns, spline.end_ns))
        is_large = camera.width * camera.height > _PIXELS
        used = every_nth(_tracked(inside, tracked), 2 * _PASSAGES if is_large else _PASSAGES)
        if len(used) < _FEWEST_PASSAGES:
            raise CalibrationError(f"{recording.path}: no rotation was followed that a lens could be told from")
        return _Followed(camera, spline, used, image_travel(spline, used, camera))

    def by_contrast(self, camera: Camera, expected: Camera, beforehand: Camera) -> _Adjusted:
        """Adjust lens and motion to the whole recording; where that does not tell the lens, it is the one beforehand.

        `camera` is the lens to begin with; parameters that the motion hardly tells are held at those of `expected`.
        """
        followed = self._follow(camera)
        self._on_stage("lens and motion")
        guess, travel = self._guess, followed.travel
        if travel.tells_lens:
            seen = followed.passages, camera, followed.rotations
            lens = calibrate_lens(*seen, guess.model, guess.fixed, expected, travel.untold)
            if lens.tells_focal_length:
                return _Adjusted(lens, followed, expected)
        if beforehand != camera:  # the lens of the scan is one of many, then
            followed = replace(self._follow(beforehand), travel=travel)
        held = hold_lens(followed.passages, beforehand, followed.rotations, guess.model, guess.fixed)
        return _Adjusted(held, followed, beforehand)

    def compared(self, found: _Adjusted, scan: tuple[FieldCandidate, ...]) -> RecordingCalibration:
        """Return what was found, with what the gyroscope says of it where there is one."""
        imu, by_gyroscope = None, False
        if self._recording.imu is not None:
            found, imu, by_gyroscope = self._by_gyroscope(found, self._recording.imu.gyroscope)
        followed = found.followed
        return RecordingCalibration(found.lens, scan, followed.passages, followed.travel, imu, by_gyroscope)

    def _by_gyroscope(
        self, found: _Adjusted, gyroscope: AngularVelocities
    ) -> tuple[_Adjusted, ImuAlignment | None, bool]:
        """Compare with the gyroscope; where it tells the focal length better than the contrast, take that from it.

        Returns also how the gyroscope lies, and whether the focal length is its own.
        """
        guess, lens, travel = self._guess, found.lens, found.followed.travel
        imu = align_gyroscope(lens.rotations, gyroscope)
        if imu is None or "focal" not in lens.names:
            return found, imu, False
        focal = focal_by_gyroscope(lens, imu, guess.model)
        if focal.deviation > min(lens.deviations[lens.names.index("focal")], UNOBSERVED_FOCAL):
            return found, imu, False
        self._on_stage("focal length by the gyroscope")
        for _ in range(_GYROSCOPE_ROUNDS):  # as the lens changes, so do the rates that are seen through it
            grown = float(np.exp(focal.change))
            start = replace(lens.camera, fx=grown * lens.camera.fx, fy=grown * lens.camera.fy)
            expected = replace(found.expected, fx=start.fx, fy=start.fx)
            followed = replace(self._follow(start), travel=travel)
            seen = followed.passages, start, followed.rotations, guess.model, (*guess.fixed, "focal")
            lens = calibrate_lens(*seen, expected, travel.untold) if travel.tells_lens else hold_lens(*seen)
            imu = align_gyroscope(lens.rotations, gyroscope)
            if imu is None:
                return found, None, False
            focal = focal_by_gyroscope(lens, imu, guess.model)
            if abs(focal.change) < _AGREES * focal.deviation:
                break
        return _Adjusted(lens.with_focal_length_known_to(focal.deviation), followed, expected), imu, True


def every_nth(events: Events, most: int) -> Events:
    """Return every n-th event, so that at most so many are left."""
    return events[:: max(1, -(-len(events) // most))]


def at_most(chunks: Iterable[Events], most: int) -> Events:
    """Return the events of a stream, every second, fourth, ... of them where there are more than so many."""
    parts, count, every = [Events.empty()], 0, 1
    for chunk in chunks:
        parts.append(chunk[::every])
        count += len(parts[-1])
        while count > most:
            parts = [Events.concatenate(parts)[::2]]
            count, every = len(parts[0]), 2 * every
    return Events.concatenate(parts)


def _tracked(passages: Events, result: SlamResult) -> Events:
    """Return the passages of the windows that are in the map."""
    kept = np.zeros(len(passages), bool)
    for window in result.windows:
        if window.tracking.is_in_map:
            kept |= (passages.t_ns >= window.start_ns) & (passages.t_ns < window.end_ns)
    return passages[kept]
