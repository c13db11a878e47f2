"""Refinement of a hand-held recording: rotation, translation and distances, adjusted to all events at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.hand_adjustment import HandAdjuster, HandHeld, HandStage
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera

MOST_PASSAGES = 1_000_000  # that the adjustment uses: every n-th of more

_HOT, _FEWEST = 3, 20  # a hot pixel has so many times the passages of each neighbour, and so many more

STAGES: tuple[HandStage, ...] = (
    HandStage(1024, 2.0, 0, 40),
    HandStage(1024, 1.0, 2, 50),
    HandStage(1024, 0.7, 4, 60),
    HandStage(2048, 0.5, 4, 60),
)


class HandRefinement:
    """Adjusts a whole recording.

    Parameters
    ----------
    camera : of the recording
    passages : all events to adjust to, ordered by time, within the start's rotations
    start : the estimate to start from
    model : `sphere`, one distance for all directions; or `scene`
    """

    def __init__(
        self,
        camera: Camera,
        passages: Events,
        start: HandHeld,
        model: Literal["sphere", "scene"] = "scene",
        stages: tuple[HandStage, ...] = STAGES,
        most_passages: int = MOST_PASSAGES,
    ) -> None:
        self.adjuster = HandAdjuster(camera)
        self._stages = stages if model == "scene" else tuple(replace(stage, degree=0) for stage in stages)
        self._all = without_hot_pixels(passages, camera)
        every = max(1, -(-len(self._all) // most_passages))
        self._warp = self.adjuster.warp(self._all[::every], start.rotations.start_ns, start.rotations.end_ns)
        self._found = start

    def run(self) -> Iterator[str]:
        """Adjust; yields what has been done."""
        for number, stage in enumerate(self._stages):
            self._found = self.adjuster.adjust(self._warp, self._found, stage)
            yield f"hand-held {number + 1} of {len(self._stages)}"

    def result(self) -> HandHeld:
        """Return what was found, in a world whose first orientation is the identity."""
        return replace(self._found, seen=self.adjuster.seen(self._warp, self._found)).from_first_orientation()

    def panorama(self, found: HandHeld, size: tuple[int, int]) -> SingleArray:
        """Return the map (height, width) of all events, along a motion and with the distances of its scene."""
        return self.adjuster.image(self._all, found, size)


def without_hot_pixels(passages: Events, camera: Camera) -> Events:
    """Return passages without those of pixels that have many times as many as any neighbour.

    A hot pixel moves with the camera: where little else happens it would tell that the camera rests.
    """
    counts = np.zeros((camera.height, camera.width), np.int64)
    np.add.at(counts, (passages.y, passages.x), 1)
    padded = np.pad(counts, 1)
    shifted = [
        padded[1 + i : 1 + i + camera.height, 1 + j : 1 + j + camera.width]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if i or j
    ]
    hot = counts > _HOT * np.max(shifted, axis=0) + _FEWEST
    return passages[~hot[passages.y, passages.x]] if hot.any() else passages
