"""Whether the camera of a run also moves, and where it was: what is found beside and after the rotation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.hand_adjustment import HandHeld
from cmaxslam_fbp.backend.hand_refinement import STAGES, HandRefinement
from cmaxslam_fbp.backend.hand_tracking import HandTracker
from cmaxslam_fbp.backend.parallax_evidence import LEAST_PARALLAX_DEG, SHORTEST_NS, ParallaxEvidence
from cmaxslam_fbp.backend.state import BackendState
from cmaxslam_fbp.backend.tracking import WindowReport
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera


class RunTranslation:
    """The translation of a run.

    Parameters
    ----------
    config : of the backend: whether and how it is modelled
    camera : with its calibration
    state : the rotation and its map, which give way to those with a translation where one is found

    Attributes
    ----------
    found : HandHeld or None
        Motion and distances, once they are known.
    parallax_deg : float or None
        How far it moves what the camera sees; None where that is not known.
    problem : str or None
        Why a translation that was asked for is not modelled.
    is_followed : bool
        Whether it is estimated beside the rotation.
    """

    def __init__(self, config: BackendConfig, camera: Camera, state: BackendState) -> None:
        self._model: Literal["sphere", "scene"] = "sphere" if config.translation == "sphere" else "scene"
        self._camera, self._state = camera, state
        self._tracker: HandTracker | None = None
        if config.translation in ("sphere", "scene"):
            self._tracker = HandTracker(camera, self._model, state.map.size)
        self.is_followed = self._tracker is not None
        # A translation that is asked for has to show, however short the recording is.
        self._evidence = ParallaxEvidence(0 if self.is_followed else SHORTEST_NS)
        self.found: HandHeld | None = None
        self.parallax_deg: float | None = None
        self.problem: str | None = None

    def look(self, window: Window, report: WindowReport) -> None:
        """Keep what shows whether there is a translation; follow it where that is asked for."""
        passages = window.leaving if report.tracking.is_in_map else Events.empty()
        self._evidence.add(passages)
        if self._tracker is not None:
            self._tracker.add(passages)
            self._tracker.follow(self._state.require_spline(), window.start_ns)

    def decide(self) -> bool:
        """Tell, after the first pass, whether the camera has moved, and take over its translation where it is known.

        Where it has not, a rotation alone is more precise, and stays.
        """
        spline = self._state.require_spline()
        self.parallax_deg = self._evidence.parallax_deg(self._camera, spline)
        moves = self.parallax_deg is not None and self.parallax_deg >= LEAST_PARALLAX_DEG
        if self._tracker is None:
            return moves
        found = self._tracker.finish(spline)
        if found is None or self.parallax_deg is None:
            self.problem = "too few events were tracked for --hand-held: the result is a rotation alone"
            return False
        if not moves:
            self.problem = "there is no parallax that a rotation would not explain: the result is one alone"
            return False
        self._take(found, self._tracker.panorama)
        return True

    def keep(self) -> None:
        """Take over what is known of a translation where a first pass was ended early."""
        if self.is_followed and self.found is None:
            self.decide()

    def refine(self, windows: Iterable[Window]) -> Iterator[tuple[str, Window]]:
        """Adjust rotation, translation and distances to all events at once; yields what was done, and a window."""
        window, parts = None, [Events.empty()]
        for window in windows:
            if self._state.tracking(window).is_in_map:
                parts.append(window.leaving)
        assert window is not None
        spline = self._state.require_spline()
        passages = Events.concatenate(parts).between(spline.start_ns, spline.end_ns)
        start, stages = self.found, STAGES[1:]  # what was tracked has the coarse map behind it
        if start is None:
            start, stages = HandHeld.of_rotation(spline), STAGES
        refinement = HandRefinement(self._camera, passages, start, self._model, stages)
        for stage in refinement.run():
            yield stage, window
        found = refinement.result()
        self._take(found, refinement.panorama(found, self._state.map.size))
        yield "last map", window

    def _take(self, found: HandHeld, panorama: SingleArray) -> None:
        """Take over a motion with its map."""
        state = self._state
        state.map = state.map.emptied()
        state.map.image += panorama
        state.spline, self.found, self.parallax_deg = found.rotations, found, found.parallax_deg
