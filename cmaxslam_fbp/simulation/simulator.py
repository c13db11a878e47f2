"""A simulated recording: an event camera that turns inside a panorama."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation.cube_map import CubeMap, make_cube_map
from cmaxslam_fbp.simulation.foreground import Foreground, make_foreground
from cmaxslam_fbp.simulation.imu import measure_motion
from cmaxslam_fbp.simulation.motions import HandheldMotion, Motion, ground_truth_times_ns
from cmaxslam_fbp.simulation.sampled_motion import SampledMotion
from cmaxslam_fbp.simulation.scenes import SCENES, check_panorama, load_panorama
from cmaxslam_fbp.simulation.schedule import Block, pixels_per_radian, schedule_blocks
from cmaxslam_fbp.simulation.sensor import EventSensor
from cmaxslam_fbp.simulation.settings import SimulationSettings
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

_HANDHELD_DURATION_S = 10.0
_TEXELS_PER_PIXEL = 2.0
_MAX_SCENE_WIDTH = 4096
_MAX_CUBE_FOCAL = 900.0


class Simulation:
    """A recording that is made while it is read.

    Parameters
    ----------
    settings : SimulationSettings
        What to simulate; the same settings give the same bits.

    Attributes
    ----------
    settings : SimulationSettings
        As given.
    motion : Motion
        The exact rotation of the camera, over seconds since the start.
    duration_s : float
        Length of the recording: a whole number of microseconds.
    """

    def __init__(self, settings: SimulationSettings | None = None) -> None:
        self.settings = settings = settings or SimulationSettings()
        self.motion: Motion
        if settings.trajectory is not None:
            self.motion = SampledMotion(settings.trajectory)
        else:
            self.motion = HandheldMotion(
                settings.duration_s or _HANDHELD_DURATION_S,
                settings.peak_speed_deg_s,
                settings.extent_deg,
                settings.seed,
            )
        duration_s = self.motion.duration_s if settings.duration_s is None else settings.duration_s
        if duration_s > self.motion.duration_s + 1e-6:
            raise SimulationError(
                f"the trajectory lasts {self.motion.duration_s:.3f} s, less than the {duration_s} s asked for; "
                "give a shorter duration"
            )
        self._duration_us = int(np.floor(duration_s * 1e6 + 0.5))
        self.duration_s = self._duration_us * 1e-6

    @property
    def camera(self) -> Camera:
        """The camera of the recording."""
        return self.settings.camera

    @property
    def sensor_size(self) -> SensorSize:
        """Width and height of the sensor in pixels."""
        return SensorSize(self.camera.width, self.camera.height)

    @property
    def start_ns(self) -> int:
        """Stamp of the start; events have later stamps, up to the end's."""
        return self.settings.start_ns

    @cached_property
    def panorama(self) -> npt.NDArray[np.float32]:
        """The scene: an equirectangular image of linear intensity."""
        scene = self.settings.scene
        if isinstance(scene, np.ndarray):
            return check_panorama(scene)
        if str(scene) not in SCENES:
            return load_panorama(scene)
        wanted = 2 * np.pi * _TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy)
        width = int(np.clip(64 * np.ceil(wanted / 64), 512, _MAX_SCENE_WIDTH))
        return SCENES[str(scene)](width, self.settings.seed)

    @cached_property
    def ground_truth(self) -> RotationTrajectory:
        """The exact `R_wc` at 200 Hz, and at the end."""
        from scipy.spatial.transform import Rotation

        times_ns = ground_truth_times_ns(self._duration_us * 1000)
        rotations = Rotation.from_matrix(self.motion.rotations(times_ns * 1e-9))
        return RotationTrajectory.from_rotations(times_ns + self.start_ns, rotations)

    @cached_property
    def imu(self) -> ImuSamples:
        """What a gyroscope and an accelerometer measure at 1 kHz, with noise and bias."""
        return measure_motion(
            self.motion, self._duration_us * 1000, self.start_ns, self.settings.imu, self.settings.seed
        )

    @property
    def _texel_focal(self) -> float:
        return min(_TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy), _MAX_CUBE_FOCAL)

    @cached_property
    def _max_step_rad(self) -> float:
        return self.settings.max_motion_px / pixels_per_radian(self.camera)

    @property
    def _blur_rad(self) -> float:
        return self.settings.blur_px / max(self.camera.fx, self.camera.fy)

    @cached_property
    def cube_map(self) -> CubeMap:
        """The scene as the pixels sample it: blurred, logarithmic, on the faces of a cube."""
        return make_cube_map(self.panorama, self._texel_focal, self._blur_rad)

    @cached_property
    def foreground(self) -> Foreground | None:
        """The moving object, if there is one."""
        if self.settings.foreground is None:
            return None
        return make_foreground(
            self.settings.foreground,
            self.duration_s,
            0.6 * float(self.panorama.mean()),
            self._texel_focal,
            self._blur_rad,
            self.settings.seed,
        )

    @cached_property
    def blocks(self) -> list[Block]:
        """The stretches of time that are rendered at one density."""
        times_s = np.minimum(np.arange(-(-self._duration_us // 1000) + 1) * 1e-3, self.duration_s)
        speeds = np.linalg.norm(self.motion.angular_velocities(times_s), axis=1)
        if self.foreground is not None:
            speeds += np.linalg.norm(self.foreground.motion.angular_velocities(times_s), axis=1)
        return list(schedule_blocks(self._duration_us, speeds, self._max_step_rad))

    def sensor(self) -> EventSensor:
        """Return a fresh sensor that is adapted to the first view."""
        sensor = EventSensor(
            self.camera,
            self.cube_map,
            self.settings.sensor,
            self.settings.seed,
            self.foreground,
            self._max_step_rad,
        )
        start = np.zeros(1)
        sensor.begin(
            self.motion.rotations(start)[0],
            None if self.foreground is None else self.foreground.motion.rotations(start)[0],
        )
        return sensor

    def chunks(self, chunk_s: float = 0.03) -> Iterator[Events]:
        """Yield the events in order of time, in pieces of about `chunk_s` (some may be empty).

        Every call starts the same recording anew; the pieces' length does not change the events.
        """
        if not 0 < chunk_s < np.inf:
            raise SimulationError(f"chunks of {chunk_s} s are impossible; give a positive length")
        sensor = self.sensor()
        pieces: list[Events] = []
        length_us = 0
        for block in self.blocks:
            times_s = (block.start_us + block.times_us[1:]) * 1e-6
            turned = None if self.foreground is None else self.foreground.motion.rotations(times_s)
            pieces.append(sensor.advance(block, self.motion.rotations(times_s), turned, self.start_ns))
            length_us += block.length_us
            if length_us >= chunk_s * 1e6:
                yield Events.concatenate(pieces)
                pieces, length_us = [], 0
        if pieces:
            yield Events.concatenate(pieces)
