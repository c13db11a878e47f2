"""What to simulate: the settings of a recording. All defaults are here or in the sections that these name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.simulation.foreground import ForegroundSettings
from cmaxslam_fbp.simulation.imu import ImuNoise
from cmaxslam_fbp.simulation.lighting import CoverSettings, FlickerSettings
from cmaxslam_fbp.simulation.room import SHAPES
from cmaxslam_fbp.simulation.sensor_settings import SensorSettings
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory


@dataclass(frozen=True)
class RecordingSettings:
    """What all simulated recordings have in common.

    Attributes
    ----------
    scene : str, Path or array
        `shapes`, `boxes`, `poster`, `stars`, the path of an image, or an image of linear intensity.
    camera : Camera
        The sensor and its lens.
    duration_s : float, optional
        Length of the recording: 10 s if nothing else determines it.
    sensor : SensorSettings
        Thresholds, bandwidth, refractory time, noise and read-out.
    imu : ImuNoise
        Noise of the gyroscope and the accelerometer.
    foreground : ForegroundSettings, optional
        A moving object in front of the scene.
    flicker : FlickerSettings, optional
        A light that flickers on a part of the image.
    cover : CoverSettings, optional
        A lens that is covered for a while.
    blur_px : float
        Gaussian blur of lens and pixel, as standard deviation in pixels at the image's centre.
    max_motion_px : float
        Nothing moves further between two renderings.
    seed : int
        Draws scene, motion, sensor and noise.
    start_ns : int
        Stamp of the recording's start.
    """

    scene: str | Path | npt.NDArray[np.floating] = "shapes"
    camera: Camera = field(default_factory=davis240c)
    duration_s: float | None = None
    sensor: SensorSettings = field(default_factory=SensorSettings)
    imu: ImuNoise = field(default_factory=ImuNoise)
    foreground: ForegroundSettings | None = None
    flicker: FlickerSettings | None = None
    cover: CoverSettings | None = None
    blur_px: float = 0.5
    max_motion_px: float = 0.5
    seed: int = 0
    start_ns: int = 1_468_941_032_000_000_000

    def __post_init__(self) -> None:
        if self.duration_s is not None and not 1e-3 <= self.duration_s < np.inf:
            raise SimulationError(f"a duration of {self.duration_s} s is impossible; give 0.001 s or more")
        if not 0.01 <= self.max_motion_px <= 2:
            raise SimulationError(f"max_motion_px={self.max_motion_px} is impossible; give one within [0.01, 2]")
        if not 0 <= self.blur_px <= 20:
            raise SimulationError(f"blur_px={self.blur_px} is impossible; give one within [0, 20]")
        if self.seed < 0:
            raise SimulationError(f"the seed {self.seed} is negative; give 0 or more")


@dataclass(frozen=True)
class SimulationSettings(RecordingSettings):
    """A camera that turns inside a panorama, whose image is equirectangular (h, 2h).

    Attributes
    ----------
    trajectory : RotationTrajectory, optional
        A motion to follow (smoothed, and turned to start at the identity) instead of a random hand-held one. The
        recording is as long, if no duration is given.
    peak_speed_deg_s, extent_deg : float
        Of the hand-held motion: its largest speed, and the bound of its yaw; see `HandheldMotion`.
    """

    trajectory: RotationTrajectory | None = None
    peak_speed_deg_s: float = 350.0
    extent_deg: float = 45.0


@dataclass(frozen=True)
class PlanarSettings(RecordingSettings):
    """A camera that translates, without turning, in front of a plane, which the middle square of an image covers.

    Attributes
    ----------
    depth_m : float
        Distance of the plane from where the camera starts, along its optical axis. The scene is drawn in proportion:
        it looks the same from there at any depth. At one metre the image moves as fast as the camera.
    peak_speed_m_s, extent_m : float
        Of the hand-held motion: its largest speed, and the bound of its way to the right and to the left; see
        `HandheldTranslation`.
    """

    depth_m: float = 1.0
    peak_speed_m_s: float = 1.0
    extent_m: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.depth_m < np.inf:
            raise SimulationError(f"a depth of {self.depth_m} m is impossible; give a positive one")
        if self.extent_m > self.depth_m:  # half of the extent is the way forward
            raise SimulationError(
                f"a motion of {self.extent_m} m comes too close to a plane at {self.depth_m} m; "
                "give an extent no larger than the depth"
            )


@dataclass(frozen=True)
class RoomSettings(SimulationSettings):
    """A camera that a hand turns and moves inside a room, whose walls show a panorama.

    Attributes
    ----------
    trajectory : RotationTrajectory, optional
        Its positions are followed too.
    room : str
        `box`, `wall` (its other walls are far away) or `clutter` (a box with boards at several distances in it).
    scene_distance_m : float
        From where the camera starts to the front wall.
    lever_m : float
        Of the hand-held motion: the camera turns about a wrist so far behind it, which itself moves by a quarter of
        that; see `HandTranslation`.
    """

    room: str = "box"
    scene_distance_m: float = 1.0
    lever_m: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scene_distance_m < np.inf:
            raise SimulationError(f"a scene distance of {self.scene_distance_m} m is impossible; give a positive one")
        if not 0 <= self.lever_m < np.inf:
            raise SimulationError(f"a lever of {self.lever_m} m is impossible; give 0 or more")
        if self.room not in SHAPES:
            raise SimulationError(f"there is no room '{self.room}'; choose one of {', '.join(SHAPES)}")
