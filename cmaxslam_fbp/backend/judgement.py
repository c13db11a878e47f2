"""What becomes of an adjusted window: whether it has lost the map, and where in the map it is instead."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cmaxslam_fbp.backend.adjustment import Adjuster
from cmaxslam_fbp.backend.relocalisation import SAME_RAD, Relocaliser, Trial
from cmaxslam_fbp.backend.state import BackendState
from cmaxslam_fbp.backend.tracking import Tracking, TrackingMonitor
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory.spline import RotationSpline

_BESIDE_RAD = np.radians(3.0)  # the distance at which nothing matches any more but by chance
_STANDS_OUT, _CHANCE = 3.0, 0.03  # a match that stands out is so many times those, or at least this one
_SILENCE_NS = 500_000_000  # after so long without enough events the camera may be anywhere
_ASTRAY = 5  # and after so many lost windows in a row: the map must tell
_AT_ONCE, _EVERY = 3, 4  # of lost windows in a row the first ones are searched for, then every so many-th


@dataclass(frozen=True)
class Proposal:
    """A window found far from its prediction, which the next one must confirm."""

    window: Window
    trial: Trial


@dataclass(frozen=True)
class Verdict:
    """What became of a window, its place, and the window before it where this one confirms the place of that."""

    tracking: Tracking
    trial: Trial
    confirmed: Proposal | None = None


class Judge:
    """Judges one window after the other.

    A window is lost if it matches the map less than windows usually do, or has turned too far from its prediction. It
    is then looked for in the whole map. Far from the prediction, a place must be found by two windows in a row.

    Attributes
    ----------
    monitor : TrackingMonitor
        How well windows usually match.
    lost_in_a_row : int
        How many were lost up to now.
    """

    def __init__(self, config: BackendConfig, adjuster: Adjuster, state: BackendState) -> None:
        self._config, self._adjuster, self._state = config, adjuster, state
        self.monitor = TrackingMonitor(config.lost_correlation, np.radians(config.lost_step_deg))
        self.lost_in_a_row = 0
        self._relocaliser = Relocaliser(adjuster, state)
        self._last_seen_ns: int | None = None
        self._is_astray = False  # the prediction says nothing
        self._proposed: Proposal | None = None

    @property
    def has_proposal(self) -> bool:
        """Whether the next window may confirm the last one's place."""
        return self._proposed is not None

    def judge(self, window: Window, trial: Trial, start: RotationSpline) -> Verdict:
        """Judge a window that was adjusted from its prediction `start`."""
        is_silent = self._last_seen_ns is not None and window.end_ns - self._last_seen_ns > _SILENCE_NS
        self._is_astray = self._is_astray or is_silent
        verdict, proposed, self._proposed = Verdict(Tracking.TRACKED, trial), self._proposed, None
        if self._is_lost(window, trial, start):
            verdict = self._find_again(window, trial, start, proposed)
        self._last_seen_ns = window.end_ns
        self.lost_in_a_row = 0 if verdict.tracking.is_in_map else self.lost_in_a_row + 1
        is_lost = verdict.tracking is Tracking.LOST
        self._is_astray = is_lost and (self._is_astray or self.lost_in_a_row >= _ASTRAY)
        return verdict

    def _is_plausible(self, window: Window, trial: Trial, start: RotationSpline) -> bool:
        """Tell whether a window turns little enough against its prediction."""
        return start.angle_to(trial.adjusted.spline, window.next_ns) <= np.radians(self._config.lost_step_deg)

    def _is_lost(self, window: Window, trial: Trial, start: RotationSpline) -> bool:
        """Tell whether a window has lost the map, or its turn against the prediction is not plausible."""
        view, adjusted, match = trial.view, trial.adjusted, trial.match
        is_unsure = self.lost_in_a_row > 0 or self._is_astray
        if match is None and is_unsure:
            return self.monitor.least_match is not None
        if not self.monitor.is_lost(match, start.angle_to(adjusted.spline, window.next_ns)):
            return False
        if match is None or is_unsure or not self._is_plausible(window, trial, start):
            return True  # the search compares it with all other places, not only with those a few degrees beside
        # A motion in a new direction shows edges that the map does not have yet: a poor match, but at the right place,
        # where it is far better than a few degrees beside.
        axes = adjusted.spline.rotations_at(window.middle_ns).T[:2]
        controls = Rotation.from_quat(adjusted.spline.quaternions_xyzw)
        beside = []
        for axis in (*axes, *-axes):
            turned = (Rotation.from_rotvec(_BESIDE_RAD * axis) * controls).as_quat()
            image = self._adjuster.image(view.warp, replace(adjusted.spline, quaternions_xyzw=turned), view.region)
            beside.append(self._state.map.match(view, image) or 0.0)
        return match <= _STANDS_OUT * max(*beside, _CHANCE)

    def _find_again(self, window: Window, ordinary: Trial, start: RotationSpline, proposed: Proposal | None) -> Verdict:
        """Look in the whole map for a window that is lost at the predicted place."""
        is_plausible = self._is_plausible(window, ordinary, start)
        found = None
        # A search costs as much as some windows: where it was in vain just now, it waits.
        is_time = self.lost_in_a_row < _AT_ONCE or self.lost_in_a_row % _EVERY == 0
        least_match = self.monitor.least_match
        if least_match is not None and self._config.relocalisation and (proposed is not None or is_time):
            found = self._relocaliser.find(window, start, ordinary if is_plausible else None, least_match)
        if found is None:
            # Where there is no map, the frontend's motion may stand for a moment after a loss.
            may_stand = ordinary.match is None and is_plausible and not self._is_astray
            return Verdict(Tracking.TRACKED if may_stand else Tracking.LOST, ordinary)
        if found is ordinary:
            return Verdict(Tracking.TRACKED, ordinary)
        spline = found.adjusted.spline
        if spline.angle_to(start, window.middle_ns) <= SAME_RAD:
            return Verdict(Tracking.FOUND_AGAIN, found)
        if (
            proposed is not None
            and proposed.window.next_ns == window.start_ns
            and proposed.trial.adjusted.spline.angle_to(spline, window.start_ns) <= SAME_RAD
        ):
            return Verdict(Tracking.TRACKED, found, confirmed=proposed)
        self._proposed = Proposal(window, found)
        return Verdict(Tracking.LOST, ordinary)
