"""Relocalisation: where a window is that may be anywhere, or that it is nowhere in the map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from cmaxslam_fbp.backend.adjustment import Adjusted, Adjuster
from cmaxslam_fbp.backend.map_search import MapSearch, Place
from cmaxslam_fbp.backend.state import BackendState
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.backend.window_objective import View
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory.spline import RotationSpline

_WORTH_TRYING = 0.5  # part of the least match that a place must reach in the search
_SIGMAS_PX = (2.0, None)  # blurs with which a window is adjusted at a place that was found; at last the usual one
_BETTER = 1.5  # a window that matches as usual must do so by this factor better than at any other place
_STANDS_OUT, _CHANCE = 3.0, 0.05  # one that does not, but may see new edges, by this factor; and better than by chance
_NEARLY = 0.8  # of the least match, of such a place: alone in a small map, chance stands out as well
SAME_RAD = np.radians(3.0)  # results nearer than this are one place


@dataclass(frozen=True)
class Trial:
    """A window adjusted at a place, and how well it matches the map there; None where there is none."""

    view: View
    adjusted: Adjusted
    match: float | None


class Relocaliser:
    """Looks for windows in the whole map.

    Parameters
    ----------
    adjuster : adjusts the windows
    state : with the map
    """

    def __init__(self, adjuster: Adjuster, state: BackendState) -> None:
        self._adjuster, self._state = adjuster, state
        self._search = MapSearch(state.map.size, state.map.planes)

    def find(self, window: Window, start: RotationSpline, ordinary: Trial | None, least_match: float) -> Trial | None:
        """Return the window at its place in the map, which may be the ordinary one; None where it is nowhere.

        A place must match as windows do that are tracked, and clearly better than the best of all others; or several
        times better than them, where new edges spoil the match.

        Parameters
        ----------
        window : the window
        start : its predicted motion, from an orientation that may be wrong
        ordinary : the result at the predicted orientation, if that is plausible
        least_match : of a window that is tracked
        """
        middle_ns = window.middle_ns
        # The predicted place is tried as the others are: with as much freedom, noise matches better anywhere.
        predicted = Place(start.rotations_at(middle_ns), np.inf)
        places = [predicted, *self._search.places(self._adjuster.warp(window), start, self._state.map)]
        likely = [place for place in places if place.score >= _WORTH_TRYING * least_match]
        tried = [self._try(window, start, place) for place in likely]
        trials = [(trial.match, trial) for trial in (ordinary, *tried) if trial is not None and trial.match is not None]
        if not trials:
            return None
        match, best = max(trials, key=itemgetter(0))
        spline = best.adjusted.spline
        others = [other for other, trial in trials if spline.angle_to(trial.adjusted.spline, middle_ns) > SAME_RAD]
        second = max([*others, 0.0])
        stands_out = match >= max(_NEARLY * least_match, _STANDS_OUT * max(second, _CHANCE))
        return best if stands_out or match >= max(least_match, _BETTER * second) else None

    def _try(self, window: Window, start: RotationSpline, place: Place) -> Trial:
        """Adjust the window at a place; all its control rotations are free, for what came before does not count."""
        turn = Rotation.from_matrix(place.R_wc @ start.rotations_at(window.middle_ns).T)
        spline = replace(start, quaternions_xyzw=(turn * Rotation.from_quat(start.quaternions_xyzw)).as_quat())
        view = self._adjuster.look(window, spline, self._state.map)
        for sigma_px in _SIGMAS_PX:
            adjusted = self._adjuster.adjust(view, spline, 0, blur_sigma_px=sigma_px)
            spline = adjusted.spline
        return Trial(view, adjusted, self._state.map.match(view, adjusted.image))
