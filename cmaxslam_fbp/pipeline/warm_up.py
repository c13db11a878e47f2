"""Compile what a run needs before its time is taken: Numba compiles at the first call, and keeps the result on disk."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from cmaxslam_fbp.backend.hand_adjustment import HandHeld, HandStage
from cmaxslam_fbp.backend.hand_refinement import HandRefinement
from cmaxslam_fbp.backend.map_search import Cells, MapSearch
from cmaxslam_fbp.backend.panorama import field_of_view_planes, map_size
from cmaxslam_fbp.compiling import mark_of
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.pipeline.painting import paint
from cmaxslam_fbp.pipeline.slam import Slam
from cmaxslam_fbp.trajectory.spline import RotationSpline

_MOST_EVENTS = 1_000_000  # extreme settings are not worth the time


def compile_once(config: Config, camera: Camera) -> float:
    """Warm up where these settings have not been compiled on this machine yet; return the seconds that it took."""
    mark = mark_of(config.model_dump_json(exclude={"recording"}))
    if mark is not None and mark.exists():
        return 0.0
    seconds = warm_up(config, camera)
    if mark is not None:
        with suppress(OSError):
            mark.touch()
    return seconds


def warm_up(config: Config, camera: Camera) -> float:
    """Run the SLAM with this configuration on a moment of made-up events; return the seconds that it took."""
    began = time.perf_counter()
    backend = config.backend.model_copy(update={"max_evaluations": 2})  # one more does nothing new
    events = config.events.model_copy(update={"time_lapse": 1.0})  # nothing to compile
    config = config.model_copy(update={"backend": backend, "events": events})
    with suppress(RecordingError):  # settings under which the dots say nothing: the recording decides
        dots = turning_dots(config, camera)
        result = Slam(config).run(dots)
        if config.intensity.enabled:
            paint(result, camera, config)
        _try_a_translation(camera, result.stretches[0].spline)
    # The dots are never lost: the search over the map is called for itself.
    one = np.ones(1, np.float32)
    search = MapSearch(map_size(config.backend, camera), field_of_view_planes(camera))
    search.scores(np.eye(3)[None], Cells(np.ones((3, 1), np.float32), one, one), np.ones((8, 16), np.float32), 64)
    return time.perf_counter() - began


def _try_a_translation(camera: Camera, rotations: RotationSpline) -> None:
    """Adjust a translation to a few events: the dots are too short to show one."""
    count = 100
    t_ns = np.linspace(rotations.start_ns, rotations.end_ns - 1, count).astype(np.int64)
    x, y = (np.linspace(0, side - 1, count).astype(np.uint16) for side in (camera.width, camera.height))
    events = Events(t_ns, x, y, np.ones(count, np.uint8))
    stages = (HandStage(64, 1.0, 0, 1),)
    for _ in HandRefinement(camera, events, HandHeld.of_rotation(rotations), stages=stages).run():
        pass


def turning_dots(config: Config, camera: Camera) -> Recording:
    """Return dots that move steadily over the sensor, for a few windows of the backend."""
    duration_s = config.backend.window_s + 3 * config.backend.stride_s
    packet = config.frontend.events_per_packet if config.frontend.packets == "count" else 0
    rate_ev_s = max(config.frontend.still_rate_ev_s, config.backend.still_rate_ev_s, 30_000.0)
    count = min(max(int(2 * rate_ev_s * duration_s), 2 * packet), _MOST_EVENTS)
    random = np.random.default_rng(0)
    size = np.array([camera.width, camera.height])
    dots = random.uniform(0.2, 0.8, (50, 2)) * size
    t_s = np.linspace(0, duration_s, count)
    place = dots[random.integers(0, len(dots), count)] + 20.0 * np.column_stack([t_s, t_s])
    x, y = np.clip(place + random.normal(size=place.shape), 0, size - 1).astype(np.uint16).T
    events = Events.from_arrays((t_s * 1e9).astype(np.int64), x, y, random.integers(0, 2, count), time_unit="ns")
    return Recording.from_events(events, camera=camera, name="warm-up")
