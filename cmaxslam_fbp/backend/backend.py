"""The backend: it follows the camera window by window, and builds the map."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cmaxslam_fbp.backend.adjustment import Adjuster
from cmaxslam_fbp.backend.judgement import Judge
from cmaxslam_fbp.backend.panorama import VISIT_NS, PanoramaMap
from cmaxslam_fbp.backend.refinement import Refinement, Windows
from cmaxslam_fbp.backend.relocalisation import Trial
from cmaxslam_fbp.backend.state import BackendState
from cmaxslam_fbp.backend.tracking import BY_CHANCE, TOO_FEW_EVENTS, Tracking, WindowReport
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.backend.window_objective import View
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.initialisation import continue_spline, fit_spline, integrate_angular_velocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_COARSE_SIGMAS_PX = (2.0, 4.0)  # blurs with which a window that does not match well is tried again


class Backend:
    """Refines a continuous-time trajectory by bundle adjustment over a panoramic map.

    Each window goes through CMax-SLAM's loop: its motion is predicted from the frontend's velocities, adjusted against
    the map, judged, and what no later window holds is committed to the map.

    Attributes
    ----------
    state : BackendState
        Trajectory, map, and what became of every window.
    refinement : Refinement
        Adjusts windows again; `refine` runs it over the whole recording.
    """

    def __init__(self, config: BackendConfig, camera: Camera) -> None:
        self._config = config
        self._adjuster = Adjuster(config, camera)
        self.state = BackendState(PanoramaMap(config, camera))
        self._judge = Judge(config, self._adjuster, self.state)
        self.refinement = Refinement(config, self._adjuster, self.state)
        self._beginning: list[Window] | None = [] if config.bootstrap_s > 0 else None

    @property
    def settled_ns(self) -> int | None:
        """The time before which later windows change nothing; None where everything may still change."""
        spline = self.state.spline
        if spline is None or self._beginning is not None:
            return None
        # At a place that is proposed all control rotations of the window are free.
        return next(reversed(self.state.reports)) - (3 if self._judge.has_proposal else 2) * spline.step_ns

    def process(
        self, window: Window, velocities: AngularVelocities, *, is_still: bool = False, enough: float = 1.0
    ) -> WindowReport:
        """Follow the camera through a window, which comes after those before it.

        One that `is_still` has no evidence of a motion: its velocities stand, and the map is left alone. So it is
        with fewer events than a moving camera causes; where noise has been left out, a part of them is `enough`.
        """
        began = time.perf_counter()
        self.state.spline = self._predict(window, velocities)
        if window.is_still(enough * self._config.still_rate_ev_s):
            report = _still(window, TOO_FEW_EVENTS)
        elif is_still:
            report = _still(window, BY_CHANCE)
        else:
            report = self._track(window)
        self.state.reports[window.start_ns] = replace(report, seconds=time.perf_counter() - began)
        self._adjust_beginning(window)
        return self.state.reports[window.start_ns]

    def _track(self, window: Window) -> WindowReport:
        """Adjust a window against the map, judge it, and commit it where it is in the map."""
        start = self.state.part(window)
        trial = self._adjust(self._adjuster.look(window, start, self.state.map), start)
        verdict = self._judge.judge(window, trial, start)
        if verdict.confirmed is not None:
            first = verdict.confirmed.window
            seconds = self.state.reports[first.start_ns].seconds
            report = self._commit(first, verdict.confirmed.trial, Tracking.FOUND_AGAIN)
            self.state.reports[first.start_ns] = replace(report, seconds=seconds)
        if verdict.tracking.is_in_map:
            return self._commit(window, verdict.trial, verdict.tracking)
        return _report(window, verdict.tracking, verdict.trial, self._judge.monitor.least_match)

    def refine(self, windows: Windows) -> Iterator[tuple[str, Window]]:
        """Adjust all windows against the map of the whole recording; see `Refinement.run`."""
        return self.refinement.run(windows)

    def _predict(self, window: Window, velocities: AngularVelocities) -> RotationSpline:
        """Return the trajectory continued to the window's end by integrated velocities, of which single ones err."""
        velocities = velocities.without_outliers()
        spline, step_ns = self.state.spline, round(self._config.knot_s * NS_PER_S)
        if spline is None:
            order = 4 if self._config.spline == "cubic" else 2
            samples = integrate_angular_velocities(velocities, Rotation.identity(), window.start_ns, window.end_ns)
            count = round((window.end_ns - window.start_ns) / step_ns) + order - 1
            return fit_spline(samples, order=order, start_ns=window.start_ns, step_ns=step_ns, count=count)
        # The last control rotation of a cubic spline hardly acts on the time that it was adjusted for: up to a step
        # before its end, the spline is known.
        known_ns = spline.end_ns - (step_ns if spline.order == 4 else 0)
        turn = Rotation.from_quat(spline.quaternions_at(known_ns))
        samples = integrate_angular_velocities(velocities, turn, known_ns, window.end_ns)
        return continue_spline(spline, self.state.index(window.start_ns), self.state.fixed, samples)

    def _adjust(self, view: View, start: RotationSpline) -> Trial:
        """Adjust a window; where it does not match well, and at the beginning, also from a start on a blurred map."""
        # The first window keeps its first control rotation, which fixes the world frame.
        first_free = 1 if start.start_ns == self.state.require_spline().start_ns else self.state.fixed
        adjusted = self._adjuster.adjust(view, start, first_free)
        match, monitor = self.state.map.match(view, adjusted.image), self._judge.monitor
        sigmas_px: tuple[float, ...] = () if self._beginning is None else _COARSE_SIGMAS_PX[:1]
        if self._judge.lost_in_a_row:
            sigmas_px = ()  # such a window is looked for in the whole map
        elif monitor.is_doubtful(match):
            sigmas_px = _COARSE_SIGMAS_PX
        for sigma_px in sigmas_px:
            coarse = self._adjuster.adjust(view, start, first_free, blur_sigma_px=sigma_px)
            other = self._adjuster.adjust(view, coarse.spline, first_free)
            if other.solution.score > adjusted.solution.score:
                adjusted, match = other, self.state.map.match(view, other.image)
            if not monitor.is_doubtful(match):
                break
        return Trial(view, adjusted, match)

    def _commit(self, window: Window, trial: Trial, tracking: Tracking) -> WindowReport:
        """Take over the adjusted trajectory, and add the events that no later window holds to the map."""
        view, adjusted = trial.view, trial.adjusted
        self._judge.monitor.accept(trial.match)
        self.state.put(adjusted.spline)
        self.state.map.visit(adjusted.spline.rotations_at(np.arange(window.start_ns, window.leaving_ns, VISIT_NS)))
        if len(window.leaving):
            warp = self._adjuster.warp(window, window.leaving)
            self.state.map.add(view.region, self._adjuster.image(warp, adjusted.spline, view.region))
        covariance = self._adjuster.covariance(
            view, adjusted.spline, self.state.fixed, window.middle_ns, self.state.map
        )
        return replace(_report(window, tracking, trial, self._judge.monitor.least_match), covariance=covariance)

    def _adjust_beginning(self, window: Window) -> None:
        """After some time, adjust the first windows once more, against the map that there is by then."""
        if self._beginning is None:
            return
        self._beginning.append(window)
        length_s = (window.next_ns - self._beginning[0].start_ns) / NS_PER_S
        if length_s < self._config.bootstrap_s and not window.is_last:
            return
        # Only windows all of whose events are in the map can be taken out of it.
        lost_ns = [start_ns for start_ns, report in self.state.reports.items() if report.tracking is Tracking.LOST]
        known = [
            early
            for early in self._beginning
            if early.end_ns <= window.next_ns and not any(early.start_ns <= t < early.end_ns for t in lost_ns)
        ]
        self._beginning = None
        for _ in self.refinement.readjust(known):
            pass


def _still(window: Window, reason: str) -> WindowReport:
    return WindowReport(window.start_ns, window.end_ns, len(window.events), Tracking.STILL, reason=reason)


def _report(window: Window, tracking: Tracking, trial: Trial, least_match: float | None) -> WindowReport:
    """Return what became of a window that was adjusted, with the reason in words."""
    match, solution = trial.match, trial.adjusted.solution
    report = WindowReport(window.start_ns, window.end_ns, len(window.events), tracking, match=match)
    words = "it lies where there is no map" if match is None else f"its match with the map is {match:.2f}"
    if tracking is Tracking.LOST and least_match is not None:
        reason = f"{words}; {least_match:.2f} is the least of a tracked window; it is nowhere else in the map"
    else:
        reason = f"a search over the whole map found it; {words}" if tracking is Tracking.FOUND_AGAIN else ""
    return replace(report, score=solution.score, evaluations=solution.evaluations, reason=reason)
