"""The backend: it follows the camera window by window, and builds the map."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.backend.adjustment import Adjusted, Adjuster
from cmaxslam_fbp.backend.panorama import PanoramaMap, event_density
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.backend.tracking import TrackingMonitor, correlation
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.initialisation import fit_spline, integrate_angular_velocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

_VISIT_NS = 50_000_000  # the field of view is looked up this often
_FEWEST_VISITS = 8  # of a pixel whose map a window is compared with: one that was hardly seen says little
_BESIDE_RAD = np.radians(3.0)  # the distance at which nothing matches any more but by chance
_STANDS_OUT, _CHANCE = 3.0, 0.03  # a match that stands out is so many times those, or at least this one
_COARSE_SIGMAS_PX = (2.0, 4.0)  # blurs with which a window that does not match well is tried again


class Tracking(str, Enum):
    """What became of a window."""

    ADJUSTED = "adjusted"
    STILL = "still"
    """Too few events: the frontend's motion stands, and the map is left alone."""
    LOST = "lost"
    """The window does not match the map: the frontend's motion stands, and the map is left alone."""


@dataclass(frozen=True)
class WindowReport:
    """Figures of one window; `match` is the correlation of its image with the map before it (None: no map there)."""

    start_ns: int
    end_ns: int
    events: int
    tracking: Tracking
    score: float
    match: float | None
    evaluations: int
    seconds: float


class Backend:
    """Refines a continuous-time trajectory by bundle adjustment over a panoramic map.

    Attributes
    ----------
    spline : RotationSpline or None
        The trajectory so far, `R_wc`; the camera's first orientation is the identity.
    map : PanoramaMap
        The map so far.
    reports : list of WindowReport
        One per window, in order.
    """

    def __init__(self, config: BackendConfig, camera: Camera) -> None:
        self._config = config
        self._order = 4 if config.spline == "cubic" else 2
        self._doubtful = 1 if config.spline == "cubic" else 0
        # Control rotations that stay as they are at the start of a window. Those that the time before it depends on are
        # three for a cubic spline, but then an error of the acceleration there grows from window to window where
        # events are few; with two it decays, at the price of a small change of the last 50 ms before the window.
        self._fixed = 2 if config.spline == "cubic" else 1
        self._step_ns = round(config.knot_s * NS_PER_S)
        self._adjuster = Adjuster(config, camera)
        self._camera = camera
        self.spline: RotationSpline | None = None
        self.map = PanoramaMap(self._adjuster.projection, camera, config.max_visits)
        self._monitor = TrackingMonitor(config.lost_correlation, np.radians(config.lost_step_deg))
        self.reports: list[WindowReport] = []
        self._beginning: list[Window] | None = [] if config.bootstrap_s > 0 else None

    def process(self, window: Window, velocities: AngularVelocities) -> WindowReport:
        """Extend the trajectory over a window by the frontend's velocities, adjust it, and add to the map."""
        started = time.perf_counter()
        self.spline = self._predict(window, velocities)
        report = self._track(window)
        self.reports.append(replace(report, seconds=time.perf_counter() - started))
        if self._beginning is not None:
            self._beginning.append(window)
            length_s = (window.next_ns - self._beginning[0].start_ns) / NS_PER_S
            if length_s >= self._config.bootstrap_s or window.is_last:
                # Only windows all of whose events are in the map can be taken out of it.
                lost_ns = [report.start_ns for report in self.reports if report.tracking is Tracking.LOST]
                known = [
                    early
                    for early in self._beginning
                    if early.end_ns <= window.next_ns and not any(early.start_ns <= t < early.end_ns for t in lost_ns)
                ]
                self._beginning = None
                for _ in self.readjust(known):
                    pass
        return self.reports[-1]

    def _predict(self, window: Window, velocities: AngularVelocities) -> RotationSpline:
        """Return the trajectory continued to the window's end by integrated velocities."""
        if self.spline is None:
            samples = integrate_angular_velocities(velocities, Rotation.identity(), window.start_ns, window.end_ns)
            count = round((window.end_ns - window.start_ns) / self._step_ns) + self._order - 1
            return fit_spline(samples, order=self._order, start_ns=window.start_ns, step_ns=self._step_ns, count=count)
        # The last control rotation of a cubic spline hardly acts on the time that it was adjusted for: it is made anew.
        kept = self.spline.part(0, len(self.spline) - self._doubtful)
        turn = Rotation.from_quat(kept.quaternions_at(kept.end_ns))
        samples = integrate_angular_velocities(velocities, turn, kept.end_ns, window.end_ns)
        fixed = self._order - 1
        continued = fit_spline(
            samples,
            order=self._order,
            start_ns=kept.end_ns,
            step_ns=self._step_ns,
            count=round((window.end_ns - kept.end_ns) / self._step_ns) + fixed,
            fixed_xyzw=kept.quaternions_xyzw[-fixed:],
        )
        return kept.appended(continued.quaternions_xyzw[fixed:])

    def _track(self, window: Window) -> WindowReport:
        """Adjust the window against the map as it is, and commit what leaves the window."""
        spline = self._require_spline()
        first = self._index(window.start_ns)
        part = spline.part(first, len(spline) - first)
        length_s = (window.end_ns - window.start_ns) / NS_PER_S
        if len(window.events) < max(self._config.still_rate_ev_s * length_s, 1):
            return self._report(window, Tracking.STILL, None, None)
        warp = self._adjuster.warp(window.events, window.start_ns, window.end_ns)
        region = self._adjuster.region_of(warp, part)
        known = region.cut_out(self.map.image)
        whole = event_density(self.map.image) if self._config.map_weight == "whole" else None
        # The first window keeps its first control rotation, which fixes the world frame.
        free = 1 if first == 0 else self._fixed
        map_image = self._adjuster.weigh_map(known, warp, part, region, whole)
        adjusted = self._adjuster.adjust(warp, region, part, free, map_image)
        match = self._match(adjusted, known)
        for sigma_px in _COARSE_SIGMAS_PX if self._monitor.is_doubtful(match) else self._beginning_sigmas_px:
            coarse = self._adjuster.adjust(warp, region, part, free, map_image, blur_sigma_px=sigma_px)
            other = self._adjuster.adjust(warp, region, coarse.spline, free, map_image)
            if other.solution.score > adjusted.solution.score:
                adjusted, match = other, self._match(other, known)
            if not self._monitor.is_doubtful(match):
                break
        turn = _turn_at(window.next_ns, part, adjusted.spline)
        if self._monitor.is_lost(match, turn) and not self._stands_out(warp, adjusted, known, match, turn):
            return self._report(window, Tracking.LOST, adjusted, match)
        self._monitor.accept(match)
        self.spline = _with_part(spline, first, adjusted.spline)
        self._commit(window, adjusted)
        return self._report(window, Tracking.ADJUSTED, adjusted, match)

    def readjust(self, windows: Iterable[Window]) -> Iterator[float]:
        """Adjust windows that have been committed once more, each against the map without its own events.

        A window is turned only if it then matches the rest of the map better: one of a few noisy events stays. One that
        was lost, and is therefore not in the map, joins it if it now matches. Yields by how much each window has
        turned, in radians, where the next one starts.
        """
        before = self._require_spline()
        lost = self._lost_starts_ns()
        for window in windows:
            length_s = (window.end_ns - window.start_ns) / NS_PER_S
            spline = self._require_spline()
            if len(window.events) < max(self._config.still_rate_ev_s * length_s, 1):
                yield 0.0
                continue
            first = self._index(window.start_ns)
            count = round((window.end_ns - window.start_ns) / self._step_ns) + self._order - 1
            part, old = spline.part(first, count), before.part(first, count)
            warp = self._adjuster.warp(window.events, window.start_ns, window.end_ns)
            region = self._adjuster.region_of(warp, part)
            image = self._adjuster.image_of(warp, old, region)
            is_lost = window.start_ns in lost
            known = region.cut_out(self.map.image)
            if not is_lost:
                known = np.maximum(known - image, 0)
            whole = event_density(self.map.image) if self._config.map_weight == "whole" else None
            # What follows the window is known already: the control rotations beyond its end stay.
            held = 0 if window.is_last else self._order - 2
            map_image = self._adjuster.weigh_map(known, warp, part, region, whole)
            adjusted = self._adjuster.adjust(warp, region, part, self._fixed, map_image, held=held)
            turn = _turn_at(window.next_ns, part, adjusted.spline)
            everywhere = np.ones(region.shape, np.int32)
            before_match, match = (correlation(one, known, everywhere) for one in (image, adjusted.image))
            is_better = before_match is None or (match is not None and match > before_match)
            if not is_better or turn > np.radians(self._config.lost_step_deg):
                yield 0.0
                continue
            self.spline = _with_part(spline, first, adjusted.spline)
            leaving_ns = window.end_ns if window.is_last else window.next_ns
            leaving = self._adjuster.warp(
                window.events.between(window.start_ns, leaving_ns), window.start_ns, window.end_ns
            )
            change = self._adjuster.image_of(leaving, adjusted.spline, region)
            if not is_lost:
                change -= self._adjuster.image_of(leaving, old, region)
            region.add_to(self.map.image, change)
            np.maximum(self.map.image, 0, out=self.map.image)
            yield turn

    def rebuild_map(self, windows: Iterable[Window]) -> Iterator[None]:
        """Make the map anew from all events but those of lost windows, along the trajectory as it is now."""
        spline = self._require_spline()
        lost = self._lost_starts_ns()
        self.map = PanoramaMap(self._adjuster.projection, self._camera, max_visits=2**31 - 1)
        for window in windows:
            leaving_ns = window.end_ns if window.is_last else window.next_ns
            events = window.events.between(window.start_ns, leaving_ns)
            length_s = (window.end_ns - window.start_ns) / NS_PER_S
            is_moving = len(window.events) >= self._config.still_rate_ev_s * length_s
            if len(events) and is_moving and window.start_ns not in lost:
                warp = self._adjuster.warp(events, window.start_ns, window.end_ns)
                region = self._adjuster.region_of(warp, spline)
                self.map.add(region, self._adjuster.image_of(warp, spline, region))
            yield

    def _lost_starts_ns(self) -> set[int]:
        """Return the starts of the windows that were lost."""
        return {report.start_ns for report in self.reports if report.tracking is Tracking.LOST}

    def _commit(self, window: Window, adjusted: Adjusted) -> None:
        """Add the events that no later window holds to the map."""
        leaving_ns = window.end_ns if window.is_last else window.next_ns
        events = window.events.between(window.start_ns, leaving_ns)
        for t_ns in range(window.start_ns, leaving_ns, _VISIT_NS):
            self.map.visit(adjusted.spline.rotations_at(t_ns))
        if len(events):
            warp = self._adjuster.warp(events, window.start_ns, window.end_ns)
            self.map.add(adjusted.region, self._adjuster.image_of(warp, adjusted.spline, adjusted.region))

    @property
    def _beginning_sigmas_px(self) -> tuple[float, ...]:
        """The blur that windows are tried with at the beginning, where the map is too thin to tell a good match."""
        return () if self._beginning is None else _COARSE_SIGMAS_PX[:1]

    def _match(self, adjusted: Adjusted, known: SingleArray) -> float | None:
        return correlation(adjusted.image, known, self._visits(adjusted.region))

    def _visits(self, region: Region) -> npt.NDArray[np.int32]:
        """Return how often the pixels of a region were seen, zero where that is too rarely to compare with."""
        visits = np.minimum(region.cut_out(self.map.visits), self._config.max_visits)
        visits[visits < _FEWEST_VISITS] = 0
        return visits

    def _stands_out(
        self, warp: PanoramicWarp, adjusted: Adjusted, known: SingleArray, match: float | None, turn: float
    ) -> bool:
        """Return whether a window matches the map far better where it is than a few degrees beside it.

        A motion in a new direction shows edges that the map does not have yet: a poor match, but at the right place.
        """
        if match is None or turn > np.radians(self._config.lost_step_deg):
            return False
        axes = adjusted.spline.rotations_at((adjusted.spline.start_ns + adjusted.spline.end_ns) // 2).T[:2]
        controls = Rotation.from_quat(adjusted.spline.quaternions_xyzw)
        visits = self._visits(adjusted.region)
        beside = []
        for axis in (*axes, *-axes):
            turned = (Rotation.from_rotvec(_BESIDE_RAD * axis) * controls).as_quat()
            image = self._adjuster.image_of(warp, replace(adjusted.spline, quaternions_xyzw=turned), adjusted.region)
            beside.append(correlation(image, known, visits) or 0.0)
        return match > _STANDS_OUT * max(*beside, _CHANCE)

    def _report(
        self, window: Window, tracking: Tracking, adjusted: Adjusted | None, match: float | None
    ) -> WindowReport:
        return WindowReport(
            window.start_ns,
            window.end_ns,
            len(window.events),
            tracking,
            0.0 if adjusted is None else adjusted.solution.score,
            match,
            0 if adjusted is None else adjusted.solution.evaluations,
            0.0,
        )

    def _index(self, t_ns: int) -> int:
        """Return the index of the first control rotation of the segment that starts at a time."""
        return round((t_ns - self._require_spline().start_ns) / self._step_ns)

    def _require_spline(self) -> RotationSpline:
        if self.spline is None:
            raise RuntimeError("the backend has not seen a window yet")
        return self.spline


def _with_part(spline: RotationSpline, first: int, part: RotationSpline) -> RotationSpline:
    """Return the spline with its control rotations from index `first` on replaced by those of a part of it."""
    quaternions = spline.quaternions_xyzw.copy()
    quaternions[first : first + len(part)] = part.quaternions_xyzw
    return replace(spline, quaternions_xyzw=quaternions)


def _turn_at(t_ns: int, one: RotationSpline, other: RotationSpline) -> float:
    """Return the angle between two trajectories at a time, in radians."""
    product = abs(float(one.quaternions_at(t_ns) @ other.quaternions_at(t_ns)))
    return float(2 * np.arccos(min(product, 1.0)))
