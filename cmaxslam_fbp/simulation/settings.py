"""What to simulate: the settings of a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.simulation.foreground import ForegroundSettings
from cmaxslam_fbp.simulation.imu import ImuNoise
from cmaxslam_fbp.simulation.sensor import SensorSettings
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory


@dataclass(frozen=True)
class SimulationSettings:
    """What to simulate. Every default of the simulator is here or in the sections that this names.

    Attributes
    ----------
    scene : str, Path or array
        `shapes`, `boxes`, `poster`, the path of an equirectangular image, or a panorama of linear intensity (h, 2h).
    camera : Camera
        The sensor and its lens.
    duration_s : float, optional
        Length of the recording: 10 s if not given, or the trajectory's.
    trajectory : RotationTrajectory, optional
        A motion to follow (smoothed, and turned to start at the identity) instead of a random hand-held one.
    peak_speed_deg_s, extent_deg : float
        Of the hand-held motion: its largest speed, and the bound of its yaw; see `HandheldMotion`.
    sensor : SensorSettings
        Thresholds, refractory time and noise.
    imu : ImuNoise
        Noise of the gyroscope and the accelerometer.
    foreground : ForegroundSettings, optional
        A moving object in front of the scene.
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
    trajectory: RotationTrajectory | None = None
    peak_speed_deg_s: float = 350.0
    extent_deg: float = 45.0
    sensor: SensorSettings = field(default_factory=SensorSettings)
    imu: ImuNoise = field(default_factory=ImuNoise)
    foreground: ForegroundSettings | None = None
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
