"""What a run of the SLAM gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray, SingleArray
from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.evaluation import Evaluation
from cmaxslam_fbp.events.filters import HotPixels
from cmaxslam_fbp.intensity.brightness import Brightness
from cmaxslam_fbp.intensity.event_sample import EventSample
from cmaxslam_fbp.io.live.reader import LiveFigures
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.gaps import Stretch
from cmaxslam_fbp.pipeline.trust import overall
from cmaxslam_fbp.pipeline.velocities import Velocities
from cmaxslam_fbp.trajectory import RotationTrajectory

if TYPE_CHECKING:
    from cmaxslam_fbp.backend.hand_adjustment import HandHeld

SAMPLE_RATE_HZ = 200.0


@dataclass(frozen=True)
class Timing:
    """Where the time went, in seconds: reading and frontend work beside passages and backend."""

    wall_s: float
    frontend_s: float
    passages_s: float
    backend_s: float
    refinement_s: float
    painting_s: float = 0.0


@dataclass(frozen=True)
class SlamResult:
    """Trajectory, velocities and map of a recording.

    Attributes
    ----------
    stretches : tuple of Stretch
        `R_wc` over time, as a spline for each part of the recording without a long gap; mostly one. The camera's first
        orientation is the identity.
    panorama : (height, width) float32
        The map: event counts on an equirectangular image.
    event_area : float
        The share of the map's pixels that its events fill: of two maps of the same events, the sharper has less.
    velocities : Velocities
        The frontend's, in an array with the fields `t_ns`, `omega_rad_s`, `status` and `events`.
    windows : list of WindowReport
        The backend's.
    events : int
        How many events were read.
    timing : Timing
        Where the time went.
    refinements : list of float
        For each pass of the refinement, by how many degrees the windows turned (RMS); then for each photometric step.
    photometric_errors : (float, float) or None
        What pairs of events differ by from the map, in thresholds, before and after the photometric refinement.
    hot_pixels : HotPixels
        Whose events were left out.
    lone_events : int
        How many of the events were left out where the image moves slowly, since no others were near.
    interrupted : bool
        Whether the run was ended early; the result is what there was by then.
    warnings : list of str
        What a user should know.
    unexplained_motion : float or None
        The part of the image's motion that no rotation explains; None where no packet tells.
    drowned : float
        The part of the packets looked at in which noise hides the motion of most parts of the image.
    evaluation : Evaluation or None
        Errors, where the recording has reference poses.
    hand_held : HandHeld or None
        Translation and scene distances, where they were asked for.
    parallax_deg : float or None
        The RMS angle by which the camera's displacement moves what it sees, as modelled, or else as measured; 0 where a
        rotation explains as much; None where there is too little to tell.
    live : LiveFigures or None
        Of a stream: how long its poses took, and what was left out of it.
    scene_distance_m : float or None
        The unit of positions: the mean distance of the scene, where it is known.
    sample : EventSample or None
        What the scene's brightness can be painted of, until it is.
    brightness : Brightness or None
        The scene's, where it was painted.
    """

    stretches: tuple[Stretch, ...]
    panorama: SingleArray
    event_area: float
    velocities: Velocities
    windows: list[WindowReport]
    events: int
    timing: Timing
    refinements: list[float] = field(default_factory=list)
    photometric_errors: tuple[float, float] | None = None
    hot_pixels: HotPixels = field(default_factory=lambda: HotPixels([]))
    lone_events: int = 0
    interrupted: bool = False
    warnings: list[str] = field(default_factory=list)
    unexplained_motion: float | None = None
    drowned: float = 0.0
    evaluation: Evaluation | None = None
    hand_held: HandHeld | None = None
    parallax_deg: float | None = None
    live: LiveFigures | None = None
    scene_distance_m: float | None = None
    sample: EventSample | None = None
    brightness: Brightness | None = None

    @property
    def start_ns(self) -> int:
        """The first event."""
        return self.stretches[0].start_ns

    @property
    def end_ns(self) -> int:
        """The last event."""
        return self.stretches[-1].end_ns

    @property
    def gaps_ns(self) -> list[tuple[int, int]]:
        """Start and end of each long time without events: nothing is known of the camera there."""
        return [(before.end_ns, after.start_ns) for before, after in pairwise(self.stretches)]

    @property
    def duration_s(self) -> float:
        """Time from the first event to the last one."""
        return (self.end_ns - self.start_ns) / NS_PER_S

    @property
    def tracked_s(self) -> float:
        """The duration without the gaps."""
        return self.duration_s - sum(end - start for start, end in self.gaps_ns) / NS_PER_S

    @property
    def real_time_factor(self) -> float:
        """Seconds of the recording, without gaps, per second of the run; above one it is faster than real time."""
        return self.tracked_s / self.timing.wall_s

    @property
    def lost_windows(self) -> int:
        """Windows in which tracking was lost."""
        return sum(window.tracking is Tracking.LOST for window in self.windows)

    @property
    def trust(self) -> tuple[Tracking, str]:
        """What became of the run as a whole, and why, in words."""
        return overall(self.windows, self.unexplained_motion)

    def trajectory(self, since_ns: int | None = None) -> RotationTrajectory:
        """Return samples of the trajectory at 200 Hz, from the first event, or a later time, to the last event.

        There are none inside a gap.
        """
        return sample_trajectory(self.stretches, since_ns, self.scene_distance_m or 1.0)

    def angular_velocities_at(self, t_ns: IntArray) -> FloatArray:
        """Return the body-frame angular velocities (N, 3) in rad/s; NaN inside gaps and beyond the ends."""
        omega = np.full((len(t_ns), 3), np.nan)
        for stretch in self.stretches:
            inside = (t_ns >= stretch.start_ns) & (t_ns <= stretch.known_ns)
            omega[inside] = stretch.angular_velocities_at(t_ns[inside])
        return omega


def sample_trajectory(
    stretches: tuple[Stretch, ...], since_ns: int | None = None, unit: float = 1.0
) -> RotationTrajectory:
    """Return samples at 200 Hz, from the first event, or a later time, to the last event; positions in a unit."""
    step_ns = round(NS_PER_S / SAMPLE_RATE_HZ)
    times, quaternions, positions = [], [], []
    for stretch in stretches:
        if since_ns is not None and stretch.end_ns < since_ns:
            continue
        skipped = 0 if since_ns is None else max(-((stretch.start_ns - since_ns) // step_ns), 0)
        first_ns, last_ns = stretch.start_ns + skipped * step_ns, stretch.known_ns
        t_ns = np.arange(first_ns, last_ns + 1, step_ns, dtype=np.int64)
        if len(t_ns) < 2 and since_ns is None and last_ns > first_ns:
            t_ns = np.array([first_ns, last_ns], np.int64)
        times.append(t_ns)
        quaternions.append(stretch.quaternions_at(t_ns))
        if stretch.path is not None:
            positions.append(unit * stretch.positions_at(t_ns))
    path = np.concatenate(positions) if positions else None
    return RotationTrajectory(np.concatenate(times), np.concatenate(quaternions), path)
