"""The brightness of the scene: the events that a run has kept, along its trajectory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.adjustment import SLOT_NS
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.parallax_warp import ParallaxWarp
from cmaxslam_fbp.backend.scene_distances import TABLE, as_single
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity.brightness import Brightness, solve_brightness
from cmaxslam_fbp.intensity.event_sample import PixelChoice
from cmaxslam_fbp.intensity.field_of_view import LOOK_UP_NS, seen_part
from cmaxslam_fbp.intensity.gradient_equations import GradientEquations
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.gaps import Stretch
from cmaxslam_fbp.pipeline.memory import give_back_memory
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.step import OnStep, Step

_STEP_NS = 100_000_000  # of the recording, after which it is told how far the painting is
_MOST_WIDTH = 2048  # of the panorama, at a scale of one: its equations take 80 bytes for each pixel that was seen


class Painting:
    """Paints the scene's brightness.

    Parameters
    ----------
    result : a run
    camera : of its recording
    config : its settings
    """

    def __init__(self, result: SlamResult, camera: Camera, config: Config) -> None:
        self._result, self._camera = result, camera
        self._bearings: SingleArray = self._camera.bearings().astype(np.float32)
        height, width = (config.intensity.scale * side for side in result.panorama.shape)
        while width > _MOST_WIDTH * config.intensity.scale:
            width, height = width // 2, height // 2
        self._projection = Equirectangular(width, height)
        self._equations = GradientEquations(self._camera, self._projection)
        self._painted_ns = result.start_ns
        usable = camera.seen_pixels().copy()
        for x, y, _ in result.hot_pixels.pixels:  # also what they sent before they were found
            usable[y, x] = False
        self._choose = PixelChoice(usable, 1.0)

    def run(self) -> Iterator[int]:
        """Add the events that were kept, those that the map has; yields the time that is reached."""
        for events in () if self._result.sample is None else self._result.sample.chunks():
            for chunk in _short(self._choose(events)):
                for stretch in self._result.stretches:
                    for part, is_in_map in self._parts(chunk.between(stretch.start_ns, stretch.known_ns + 1)):
                        if is_in_map:
                            self._equations.add(part, self._points(part, stretch))
                        else:
                            self._equations.forget()
                self._painted_ns = int(chunk.t_ns[-1])
                yield self._painted_ns

    def brightness(self) -> Brightness:
        """Return what there is by now."""
        rotations = [
            stretch.rotations_at(np.arange(stretch.start_ns, last_ns + 1, LOOK_UP_NS))
            for stretch in self._result.stretches
            if (last_ns := min(stretch.known_ns, self._painted_ns)) >= stretch.start_ns
        ]
        return solve_brightness(self._equations, seen_part(self._camera, np.concatenate(rotations), self._projection))

    def rotation_at(self, t_ns: int) -> FloatArray:
        """Return `R_wc` (3, 3) at a time of the recording, or the next that is known."""
        stretch = next((one for one in self._result.stretches if t_ns <= one.end_ns), self._result.stretches[-1])
        return stretch.rotations_at(min(max(t_ns, stretch.start_ns), stretch.known_ns))

    def _parts(self, events: Events) -> Iterator[tuple[Events, bool]]:
        """Cut events where the map begins or ceases to have them; tell whether it has each part."""
        if not len(events):
            return
        windows = self._result.windows
        starts = np.array([window.start_ns for window in windows], np.int64)
        first, last = np.maximum(np.searchsorted(starts, events.t_ns[[0, -1]], side="right") - 1, 0)
        is_in_map = [windows[n].tracking.is_in_map for n in range(first, last + 1)]
        changes = [n for n, (before, after) in enumerate(pairwise(is_in_map), first + 1) if before != after]
        cuts = [0, *np.searchsorted(events.t_ns, starts[changes]).tolist(), len(events)]
        for n, (begin, end) in zip([first, *changes], pairwise(cuts), strict=True):
            if end > begin:
                yield events[begin:end], windows[n].tracking.is_in_map

    def _points(self, events: Events, stretch: Stretch) -> SingleArray:
        """Return row and column (N, 2) on the panorama of what each event looked at."""
        # A slot has a length, also where all events have one stamp; and the trajectory covers it.
        end_ns = min(int(events.t_ns[-1]) + 1, stretch.known_ns)
        start_ns = min(int(events.t_ns[0]), end_ns - 1)
        found = self._result.hand_held
        if found is None or stretch.path is None:
            warp = PanoramicWarp(events, self._bearings, self._projection, start_ns, end_ns, SLOT_NS)
            return warp.points(warp.rotations(stretch))
        shifted = ParallaxWarp(events, self._bearings, start_ns, end_ns, SLOT_NS, TABLE)
        poses, inverse = shifted.poses(stretch, stretch), as_single(found.inverse.reshape(-1))
        shifted.locate(poses, inverse)
        points, weights = np.empty((len(events), 2), np.float32), np.empty(len(events), np.float32)
        shifted.points(poses, inverse, self._projection, None, points, weights)
        return points


def _short(events: Events) -> Iterator[Events]:
    """Yield events in pieces of at most a tenth of a second, none of them empty."""
    if len(events):
        edges_ns = np.arange(events.t_ns[0] + _STEP_NS, events.t_ns[-1] + 1, _STEP_NS)
        cuts = np.unique(np.searchsorted(events.t_ns, edges_ns)).tolist()
        yield from (events[begin:end] for begin, end in pairwise([0, *cuts, len(events)]))


def paint(result: SlamResult, camera: Camera, config: Config, *, on_step: OnStep | None = None) -> SlamResult:
    """Return the result of a run with the brightness of the scene, from the events that it has kept.

    Ctrl-C, and memory that is not there, leave the result without it, and with a warning. `on_step` is called every
    tenth of a second of the recording.
    """
    began = time.perf_counter()
    give_back_memory()
    try:
        painting = Painting(result, camera, config)
        due_ns = result.start_ns + _STEP_NS
        for t_ns in painting.run():
            if on_step is not None and t_ns >= due_ns:
                due_ns = t_ns + _STEP_NS
                on_step(_step(result, painting, t_ns))
        brightness = painting.brightness()
    except KeyboardInterrupt:
        warnings = [*result.warnings, "the brightness of the scene is left out: the run was interrupted"]
        return replace(result, interrupted=True, warnings=warnings, sample=None)
    except MemoryError:
        hint = "--no-intensity, or a smaller backend.panorama_size, avoids this"
        warnings = [*result.warnings, f"the brightness of the scene is left out for lack of memory: {hint}"]
        return replace(result, warnings=warnings, sample=None)
    painting_s = time.perf_counter() - began
    timing = replace(result.timing, wall_s=result.timing.wall_s + painting_s, painting_s=painting_s)
    return replace(result, brightness=brightness, timing=timing, sample=None)


def _step(result: SlamResult, painting: Painting, t_ns: int) -> Step:
    """Return where the painting is."""
    return Step(
        stage="brightness",
        recording_s=(t_ns - result.start_ns) / NS_PER_S,
        window=None,
        speed_deg_s=0.0,
        R_wc=painting.rotation_at(t_ns),
        panorama=result.panorama,
        settled_ns=result.end_ns + 1,
        events=Events.empty,
        stretches=lambda: result.stretches,
        result=lambda: result,
        brightness=painting.brightness,
    )
