"""What a run of the SLAM gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.evaluation import Evaluation
from cmaxslam_fbp.frontend.estimate import VelocityEstimate
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.spline import RotationSpline

SAMPLE_RATE_HZ = 200.0


@dataclass(frozen=True)
class Timing:
    """Where the time went, in seconds: reading and frontend work beside the backend."""

    wall_s: float
    frontend_s: float
    backend_s: float
    refinement_s: float


@dataclass(frozen=True)
class SlamResult:
    """Trajectory, velocities and map of a recording.

    Attributes
    ----------
    spline : RotationSpline
        `R_wc` over time; the camera's first orientation is the identity.
    panorama : (height, width) float32
        The map: event counts on an equirectangular image.
    velocities : list of VelocityEstimate
        The frontend's.
    windows : list of WindowReport
        The backend's.
    events : int
        How many events were read.
    start_ns, end_ns : int
        First and last event.
    timing : Timing
        Where the time went.
    refinements : list of float
        For each pass of the refinement, by how many degrees the windows turned (RMS).
    interrupted : bool
        Whether the run was ended early; the result is what there was by then.
    warnings : list of str
        What a user should know.
    evaluation : Evaluation or None
        Errors, where the recording has reference poses.
    """

    spline: RotationSpline
    panorama: npt.NDArray[np.float32]
    velocities: list[VelocityEstimate]
    windows: list[WindowReport]
    events: int
    start_ns: int
    end_ns: int
    timing: Timing
    refinements: list[float] = field(default_factory=list)
    interrupted: bool = False
    warnings: list[str] = field(default_factory=list)
    evaluation: Evaluation | None = None

    @property
    def duration_s(self) -> float:
        """Time from the first event to the last one."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def real_time_factor(self) -> float:
        """Seconds of the recording per second of the run; above one it is faster than real time."""
        return self.duration_s / self.timing.wall_s

    @property
    def lost_windows(self) -> int:
        """Windows in which tracking was lost."""
        return sum(window.tracking is Tracking.LOST for window in self.windows)

    def trajectory(self) -> RotationTrajectory:
        """Return samples of the trajectory at 200 Hz, from the first event to the last one."""
        step_ns = round(1e9 / SAMPLE_RATE_HZ)
        times = np.arange(self.start_ns, min(self.end_ns, self.spline.end_ns) + 1, step_ns, dtype=np.int64)
        if len(times) < 2:
            times = np.array([self.start_ns, min(self.end_ns, self.spline.end_ns)], np.int64)
        return self.spline.to_trajectory(t_ns=times)
