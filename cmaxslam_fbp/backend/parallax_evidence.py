"""Whether parallax explains the events of a first pass better than its rotation does, and how large it is."""

from __future__ import annotations

from importlib import import_module
from threading import Thread

import numpy as np

from cmaxslam_fbp.backend.hand_adjustment import HandHeld, HandStage
from cmaxslam_fbp.backend.hand_refinement import HandRefinement
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory.spline import RotationSpline

LEAST_PARALLAX_DEG = 0.4  # a camera that only turns seems to have half of that
SHORTEST_NS = 3 * NS_PER_S  # in which a hand moves at all

_KEPT = 100_000  # passages
_FEWEST = 10_000
_LONGEST_NS = 60 * NS_PER_S  # that are looked at
_TRIAL_PASSAGES, _TRIAL = 40_000, HandStage(1024, 2.0, 0, 6)
_MEASUREMENT = (HandStage(1024, 2.0, 0, 40), HandStage(1024, 1.0, 2, 40))
# Relative, of the score, by a translation before a sphere. Cameras that only turn gain 0.001 to 0.003, a hand before a
# wall at 1 m 0.008, at half a metre 0.009 to 0.034.
_LEAST_GAIN = 0.004


class _Sample:
    """Some passages of a part of the recording, spread evenly."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns, self.passed = start_ns, 0
        self.parts: list[Events] = []
        self.kept, self._every = 0, 1

    def add(self, passages: Events) -> None:
        """Take every n-th passage, with `n` doubled where they become many."""
        part = passages[np.arange(0, len(passages), self._every)]  # a copy: views keep all passages of a window
        self.parts.append(part)
        self.passed += len(passages)
        self.kept += len(part)
        if self.kept > 2 * _KEPT:
            self.parts = [Events.concatenate(self.parts)[np.arange(0, self.kept, 2)]]
            self.kept, self._every = len(self.parts[0]), 2 * self._every


class ParallaxEvidence:
    """Keeps some passages of a recording, and tries at its end what a translation adds to the rotation.

    A few steps of the joint adjustment on a coarse map, with the scene as a sphere, raise the score by a few parts in a
    thousand if the camera only turns, and by several times that where there is parallax. Only then it is measured, by
    more steps on more passages. Of a long recording it is the minute with the most passages that counts: what is kept,
    and what an adjustment takes, does not grow any more.

    Parameters
    ----------
    shortest_ns : what lasts less is not looked at
    """

    def __init__(self, shortest_ns: int = SHORTEST_NS) -> None:
        self._shortest_ns = shortest_ns
        self._fullest = self._last = _Sample(0)
        self._is_prepared = False

    def add(self, passages: Events) -> None:
        """Take passages of a next part of the recording."""
        if not len(passages):
            return
        if not self._last.parts or passages.t_ns[-1] >= self._last.start_ns + _LONGEST_NS:
            self._last = _Sample(int(passages.t_ns[0]))
        self._last.add(passages)
        if self._last.passed > self._fullest.passed:
            self._fullest = self._last
        if not self._is_prepared and passages.t_ns[-1] - self._last.start_ns >= self._shortest_ns:
            # There will be a trial. SciPy, which it needs, takes a while to import: that is done beside the run.
            self._is_prepared = True
            Thread(target=import_module, args=["scipy.optimize"], daemon=True).start()

    def parallax_deg(self, camera: Camera, rotations: RotationSpline) -> float | None:
        """Return the parallax; 0 where a rotation explains as much, None where there is too little to tell."""
        if self._fullest.kept < _FEWEST or rotations.end_ns - rotations.start_ns < self._shortest_ns:
            return None
        first = max((self._fullest.start_ns - rotations.start_ns) // rotations.step_ns, 0)
        count = min(_LONGEST_NS // rotations.step_ns + rotations.order, len(rotations) - first)
        rotations = rotations.part(first, count)
        if self._adjusted(camera, rotations, (_TRIAL,), _TRIAL_PASSAGES).adjuster.gain < _LEAST_GAIN:
            return 0.0
        return self._adjusted(camera, rotations, _MEASUREMENT, _KEPT).result().parallax_deg

    def _adjusted(
        self, camera: Camera, rotations: RotationSpline, stages: tuple[HandStage, ...], count: int
    ) -> HandRefinement:
        """Return a refinement of the passages that are kept, which has run."""
        passages = Events.concatenate(self._fullest.parts).between(rotations.start_ns, rotations.end_ns)
        start = HandHeld.of_rotation(rotations)
        refinement = HandRefinement(camera, passages, start, stages=stages, most_passages=count)
        for _ in refinement.run():
            pass
        return refinement
