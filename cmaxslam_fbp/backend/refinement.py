"""Refinement: adjust windows once more, each against the map of all the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from cmaxslam_fbp.backend.adjustment import Adjuster
from cmaxslam_fbp.backend.state import BackendState
from cmaxslam_fbp.backend.tracking import Tracking, correlation
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.trajectory.spline import RotationSpline

_REFINED_DEG = 0.01  # a pass that turns windows by less, in the mean, is the last one

Windows = Callable[[], Iterable[Window]]


class Refinement:
    """Adjusts windows that the first pass has left, over and over; it changes the state that it is given.

    Attributes
    ----------
    turns_deg : list of float
        For each pass over the recording, by how many degrees the windows turned (RMS).
    """

    def __init__(self, config: BackendConfig, adjuster: Adjuster, state: BackendState) -> None:
        self._config, self._adjuster, self._state = config, adjuster, state
        self.turns_deg: list[float] = []

    def run(self, windows: Windows) -> Iterator[tuple[str, Window]]:
        """Adjust all windows against the map of the whole recording, until they hardly turn any more.

        `windows` starts a new pass over the windows. Yields what is being done, and the window that it was done to.
        """
        for number in range(self._config.max_refinements):
            stage = f"refinement {number + 1}"
            for window in self.rebuild_map(windows()):
                yield f"{stage}: map", window
            turns = []
            for window, turn in self.readjust(windows()):
                turns.append(turn)
                yield stage, window
            self.turns_deg.append(float(np.degrees(np.sqrt(np.mean(np.square(turns))))))
            if self.turns_deg[-1] < _REFINED_DEG:
                break
        yield from (("last map", window) for window in self.rebuild_map(windows()))

    def rebuild_map(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Make the map anew from the events of all windows that are tracked, along the trajectory as it is now.

        It takes the place of the old one when it is whole.
        """
        state = self._state
        rebuilt = state.map.emptied()
        for window in windows:
            if state.tracking(window).is_in_map and len(window.leaving):
                spline = state.part(window)
                warp = self._adjuster.warp(window, window.leaving)
                region = self._adjuster.region(warp, spline)
                rebuilt.add(region, self._adjuster.image(warp, spline, region))
            yield window
        state.map = rebuilt

    def readjust(self, windows: Iterable[Window]) -> Iterator[tuple[Window, float]]:
        """Adjust windows once more, each against the map without its own events.

        A window is turned only if it then matches the rest of the map better: one of a few noisy events stays. One that
        was lost, and is therefore not in the map, joins it if it now matches. Yields each window with the angle in
        radians by which it has turned where the next one starts.
        """
        in_map = self._state.require_spline()
        for window in windows:
            yield window, self._readjust_one(window, in_map)

    def _readjust_one(self, window: Window, in_map: RotationSpline) -> float:
        """Adjust a window whose events lie in the map along the trajectory `in_map`, if it was tracked."""
        state, adjuster = self._state, self._adjuster
        tracking = state.tracking(window)
        if tracking is Tracking.STILL:
            return 0.0
        is_in_map = tracking.is_in_map
        start, old = state.part(window), state.part(window, in_map)
        warp = adjuster.warp(window)
        region = adjuster.region(warp, start)
        image = adjuster.image(warp, old, region)
        known = region.cut_out(state.map.image)
        if is_in_map:
            known = np.maximum(known - image, 0)
        view = adjuster.view(warp, region, start, known, state.map)
        # What follows the window is known already: the control rotations beyond its end stay.
        held = 0 if window.is_last else start.order - 2
        adjusted = adjuster.adjust(view, start, state.fixed, held=held)
        turn = start.angle_to(adjusted.spline, window.next_ns)
        everywhere = np.ones(region.shape, np.uint16)
        before, match = (correlation(one, known, everywhere) for one in (image, adjusted.image))
        is_better = before is None or (match is not None and match > before)
        if not is_better or turn > np.radians(self._config.lost_step_deg):
            return 0.0
        state.put(adjusted.spline)
        leaving = adjuster.warp(window, window.leaving)
        new = adjuster.image(leaving, adjusted.spline, region)
        state.map.replace(region, adjuster.image(leaving, old, region) if is_in_map else 0.0, new)
        if not is_in_map:
            state.reports[window.start_ns] = replace(
                state.reports[window.start_ns], tracking=Tracking.TRACKED, match=match, reason=""
            )
        return turn
