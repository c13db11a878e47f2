"""A hand-held camera, followed while the recording goes on: windows with translation against the map before them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.hand_adjustment import KNOTS, HandAdjuster, HandHeld, HandStage, Past
from cmaxslam_fbp.backend.hand_refinement import without_hot_pixels
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory.spline import RotationSpline

WINDOW_NS = 2_000_000_000  # of which rotation, translation and distances are adjusted together
STRIDE_NS = 500_000_000  # by which the window moves on
FEWEST_PASSAGES = 2000  # of which translation and distances can be told at all

_PASSAGES_S = 30_000  # that the adjustment uses in a second: every n-th of many more
_MAP_WIDTH = 1024
_BEGINNING = (HandStage(_MAP_WIDTH, 2.0, 0, 40), HandStage(_MAP_WIDTH, 1.0, 2, 40))
_WINDOW = HandStage(_MAP_WIDTH, 1.0, 2, 20)


class HandTracker:
    """Follows the first pass, which estimates a rotation, at some distance.

    The first window is adjusted as a whole recording is. After that, each one starts from what the one before has
    found, continued by the turns of the first pass and a camera that stays where it is. Its events meet the map of all
    events before it; its first controls, on which the time before depends, stay; distances that many earlier events
    have told change little. Events that the next window does not hold are then added to the map.

    Parameters
    ----------
    camera : of the recording
    model : `sphere`, one distance for all directions; or `scene`
    size : width and height of the map of all passages
    """

    def __init__(self, camera: Camera, model: Literal["sphere", "scene"], size: tuple[int, int]) -> None:
        self._camera, self._adjuster, self._size = camera, HandAdjuster(camera), size
        stages = (*_BEGINNING, _WINDOW)
        *self._beginning, self._window = (replace(s, degree=0) for s in stages) if model == "sphere" else stages
        self._passages = Events.empty()
        self._begin_ns = 0  # of the next window, where there was one
        self._past: Past | None = None
        self._found: HandHeld | None = None
        self.panorama: SingleArray = np.zeros((size[1], size[0]), np.float32)

    def add(self, passages: Events) -> None:
        """Take the passages of a next part of the recording."""
        self._passages = Events.concatenate([self._passages, passages])

    def follow(self, rotations: RotationSpline, until_ns: int) -> None:
        """Adjust the last window before a time up to which the first pass is settled, if it is due."""
        step_ns = KNOTS * rotations.step_ns
        end_ns = until_ns - (until_ns - rotations.start_ns) % step_ns
        if self._found is not None:
            is_due = end_ns >= self._found.rotations.end_ns + STRIDE_NS
        else:
            is_due = len(self._passages) >= FEWEST_PASSAGES and end_ns >= int(self._passages.t_ns[0]) + WINDOW_NS
        if is_due:
            self._adjust(rotations, end_ns)

    def finish(self, rotations: RotationSpline) -> HandHeld | None:
        """Adjust what is left at the end; return all that was found, or None where there were too few passages."""
        if self._found is None and len(self._passages) < FEWEST_PASSAGES:
            return None
        if self._found is None or rotations.end_ns > self._found.rotations.end_ns:
            self._adjust(rotations, rotations.end_ns)
        assert self._found is not None
        self._commit(self._found, rotations.end_ns + 1)
        return self._found

    def _adjust(self, rotations: RotationSpline, end_ns: int) -> None:
        """Adjust the window that ends at a time, and commit what the next one does not hold."""
        whole = _continued(self._found, rotations, end_ns)
        begin_ns = rotations.start_ns if self._past is None else self._begin_ns
        events = self._chosen(self._passages.between(begin_ns, end_ns))
        if len(events):
            warp = self._adjuster.warp(events, begin_ns, end_ns, has_map=self._past is not None)
            if self._past is None:
                for stage in self._beginning:
                    whole = self._adjuster.adjust(warp, whole, stage)
                whole = whole.from_first_orientation()
            else:
                part = self._adjuster.adjust(warp, _since(whole, begin_ns), self._window, self._past)
                whole = _joined(whole, part)
        self._found = whole.in_mean_distances()
        next_ns = end_ns + STRIDE_NS - WINDOW_NS
        next_ns -= (next_ns - rotations.start_ns) % (KNOTS * rotations.step_ns)
        self._begin_ns = max(begin_ns, next_ns)
        self._commit(self._found, self._begin_ns)

    def _commit(self, found: HandHeld, until_ns: int) -> None:
        """Add the passages before a time to the maps: no later window holds them."""
        leaving = self._passages[: int(np.searchsorted(self._passages.t_ns, until_ns))]
        self._passages = self._passages[len(leaving) :]
        image, seen = np.zeros((_MAP_WIDTH // 2, _MAP_WIDTH), np.float32), np.zeros_like(found.seen)
        if self._past is not None:
            image, seen = self._past.image, self._past.seen
        if len(leaving):
            part = _since(found, int(leaving.t_ns[0]))
            self.panorama += self._adjuster.image(leaving, part, self._size)
            events = self._chosen(leaving)
            image = image + self._adjuster.image(events, part, (_MAP_WIDTH, _MAP_WIDTH // 2))
            warp = self._adjuster.warp(events, part.rotations.start_ns, part.rotations.end_ns)
            seen = seen + self._adjuster.seen(warp, part)
        self._past = Past(image, seen, found.rotations.order - 1)

    def _chosen(self, passages: Events) -> Events:
        """Return the passages that an adjustment uses."""
        usable = without_hot_pixels(passages, self._camera)
        if len(usable) < 2:
            return usable
        enough = _PASSAGES_S * int(usable.t_ns[-1] - usable.t_ns[0]) / NS_PER_S
        return usable[:: max(1, round(len(usable) / max(enough, 1.0)))]


def _continued(found: HandHeld | None, rotations: RotationSpline, end_ns: int) -> HandHeld:
    """Return an estimate up to a time: what was found, continued by the turns of a rotation and no move.

    The last two controls hardly act on the time that they were adjusted for: they are continued, too.
    """
    segments = -(-(end_ns - rotations.start_ns) // rotations.step_ns)
    rotations = rotations.part(0, segments + rotations.order - 1)
    if found is None:
        return HandHeld.of_rotation(rotations)
    last = len(found.rotations) - 3
    known, turns = found.rotations.quaternions_xyzw, rotations.quaternions_xyzw
    offset = Rotation.from_quat(known[last]) * Rotation.from_quat(turns[last]).inv()
    turned = np.vstack([known[: last + 1], (offset * Rotation.from_quat(turns[last + 1 :])).as_quat()])
    places = found.positions.controls[:-2]
    count = -(-segments // KNOTS) + found.positions.order - 1
    moved = np.vstack([places, np.repeat(places[-1:], count - len(places), axis=0)])
    return replace(
        found,
        rotations=replace(rotations, quaternions_xyzw=turned),
        positions=replace(found.positions, controls=moved),
    )


def _since(found: HandHeld, t_ns: int) -> HandHeld:
    """Return the part of an estimate from a time on, or from the last knot of the positions before it."""
    places = found.positions
    first = (t_ns - places.start_ns) // places.step_ns
    return replace(
        found,
        rotations=found.rotations.part(KNOTS * first, len(found.rotations) - KNOTS * first),
        positions=places.part(first, len(places) - first),
    )


def _joined(whole: HandHeld, part: HandHeld) -> HandHeld:
    """Return an estimate whose last part is replaced."""
    turned = np.vstack([whole.rotations.quaternions_xyzw[: -len(part.rotations)], part.rotations.quaternions_xyzw])
    moved = np.vstack([whole.positions.controls[: -len(part.positions)], part.positions.controls])
    return replace(
        part,
        rotations=replace(whole.rotations, quaternions_xyzw=turned),
        positions=replace(whole.positions, controls=moved),
    )
