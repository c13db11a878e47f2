"""What the backend knows: the trajectory, the map, and what became of every window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cmaxslam_fbp.backend.panorama import PanoramaMap
from cmaxslam_fbp.backend.tracking import Tracking, WindowReport
from cmaxslam_fbp.backend.window import Window
from cmaxslam_fbp.trajectory.spline import RotationSpline


@dataclass
class BackendState:
    """Trajectory and map so far, which the backend and its refinement change.

    Attributes
    ----------
    map : PanoramaMap
        The map.
    spline : RotationSpline or None
        `R_wc` over time; the camera's first orientation is the identity.
    reports : dict
        What became of every window, by its start, in order.
    """

    map: PanoramaMap
    spline: RotationSpline | None = None
    reports: dict[int, WindowReport] = field(default_factory=dict)

    def require_spline(self) -> RotationSpline:
        """Return the trajectory; there is none before the first window."""
        if self.spline is None:
            raise RuntimeError("the backend has not seen a window yet")
        return self.spline

    @property
    def fixed(self) -> int:
        """How many control rotations stay as they are at the start of a window that is adjusted.

        The time before the window depends on `order - 1`. For a cubic spline one less is fixed: with three, an error of
        the acceleration grows from window to window where events are few, with two it decays, and only the last segment
        before the window changes a little.
        """
        return max(self.require_spline().order - 2, 1)

    def index(self, t_ns: int) -> int:
        """Return the index of the first control rotation of the segment that starts at a time."""
        spline = self.require_spline()
        return round((t_ns - spline.start_ns) / spline.step_ns)

    def part(self, window: Window, spline: RotationSpline | None = None) -> RotationSpline:
        """Return the part of the trajectory, or of another one with the same knots, that a window follows."""
        spline = spline or self.require_spline()
        count = round((window.end_ns - window.start_ns) / spline.step_ns) + spline.order - 1
        return spline.part(self.index(window.start_ns), count)

    def put(self, part: RotationSpline) -> None:
        """Replace a part of the trajectory."""
        spline = self.require_spline()
        first = self.index(part.start_ns)
        quaternions = spline.quaternions_xyzw.copy()
        quaternions[first : first + len(part)] = part.quaternions_xyzw
        self.spline = replace(spline, quaternions_xyzw=quaternions)

    def tracking(self, window: Window) -> Tracking:
        """Return what became of a window."""
        return self.reports[window.start_ns].tracking
