"""Where a run is: what those who watch it are told after each window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.tracking import WindowReport
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.intensity.brightness import Brightness
from cmaxslam_fbp.pipeline.gaps import Stretch
from cmaxslam_fbp.pipeline.result import SlamResult


@dataclass(frozen=True)
class Step:
    """Where a run is: for progress bars and videos.

    Attributes
    ----------
    stage : str
        What is being done.
    recording_s : float
        Time in the recording.
    window : WindowReport or None
        The window that is done; None while refining.
    speed_deg_s : float
        The camera's speed at its end.
    R_wc : (3, 3) float64
        The camera's orientation where the window ends.
    panorama : (height, width) float32
        The map as it is now: a view that goes on changing.
    settled_ns : int or None
        The time of the recording before which the run changes nothing any more; None where it may change everything.
    events : callable
        Returns the last of the recording's events before the window's end: as many seconds as `run` was told to keep.
    stretches : callable
        Returns the trajectory by now; see `SlamResult`.
    result : callable
        Returns what there is by now, without errors against a reference.
    brightness : callable or None
        Returns the brightness of the scene by now, while that is made.
    """

    stage: str
    recording_s: float
    window: WindowReport | None
    speed_deg_s: float
    R_wc: FloatArray
    panorama: SingleArray
    settled_ns: int | None
    events: Callable[[], Events]
    stretches: Callable[[], tuple[Stretch, ...]]
    result: Callable[[], SlamResult]
    brightness: Callable[[], Brightness] | None = None


OnStep = Callable[[Step], None]
