"""A simulated recording: what is the same wherever the camera is and however it moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray, SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.simulation.foreground import Foreground, make_foreground
from cmaxslam_fbp.simulation.imu import measure_motion
from cmaxslam_fbp.simulation.lighting import Lighting
from cmaxslam_fbp.simulation.motions import Motion
from cmaxslam_fbp.simulation.readout import Readout
from cmaxslam_fbp.simulation.scene_map import SceneMap
from cmaxslam_fbp.simulation.schedule import Block, pixels_per_radian, schedule_blocks
from cmaxslam_fbp.simulation.sensor import EventSensor
from cmaxslam_fbp.simulation.settings import RecordingSettings
from cmaxslam_fbp.simulation.translations import Translation
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

TEXELS_PER_PIXEL = 2.0
HANDHELD_DURATION_S = 10.0
_POSE_RATE_HZ = 200


class SimulatedRecording(ABC):
    """A recording that is made while it is read; the same settings give the same bits.

    Attributes
    ----------
    settings : RecordingSettings
        As given.
    motion : Motion
        The exact rotation of the camera, over seconds since the start.
    translation : Translation, optional
        Its exact path, where it does not only turn.
    duration_s : float
        Length of the recording: a whole number of microseconds.
    most_texels : float
        Per unit of tangent, of scene and foreground.
    """

    most_texels: ClassVar[float] = np.inf

    def __init__(
        self, settings: RecordingSettings, motion: Motion, duration_s: float, translation: Translation | None = None
    ) -> None:
        self.settings = settings
        self.motion = motion
        self.translation = translation
        self._duration_us = int(np.floor(duration_s * 1e6 + 0.5))
        self.duration_s = self._duration_us * 1e-6

    @property
    @abstractmethod
    def scene_map(self) -> SceneMap:
        """The scene as the pixels sample it: blurred and logarithmic."""

    @property
    @abstractmethod
    def texture(self) -> SingleArray:
        """The scene: an image of linear intensity."""

    @abstractmethod
    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        """Return bounds (M,) of the image's motion per second, in radians or tangents, at times (M,)."""

    @property
    def _texel_focal(self) -> float:
        """Texels of scene and foreground per unit of tangent."""
        return min(TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy), self.most_texels)

    @cached_property
    def _max_step(self) -> float:
        """Largest motion of the image between two renderings, in the unit of `_image_speeds`."""
        return self.settings.max_motion_px / pixels_per_radian(self.camera)

    def scene_distances(self, directions: FloatArray, t_s: float) -> FloatArray | None:
        """Return the distances in metres (N,) of the scene along unit directions (N, 3) of the world, from where the
        camera is; None for a scene that is infinitely far.
        """
        return None

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
    def ground_truth(self) -> RotationTrajectory:
        """The exact `R_wc` at 200 Hz, and at the end; with positions where the camera does not only turn."""
        from scipy.spatial.transform import Rotation

        times_ns = ground_truth_times_ns(self._duration_us * 1000)
        times_s = np.asarray(times_ns * 1e-9, np.float64)
        quaternions = Rotation.from_matrix(self.motion.rotations(times_s)).as_quat()
        return RotationTrajectory(times_ns + self.start_ns, quaternions, self._positions(times_s))

    @cached_property
    def imu(self) -> ImuSamples:
        """What a gyroscope and an accelerometer measure at 1 kHz, with noise and bias."""
        settings = self.settings
        return measure_motion(
            self.motion, self._duration_us * 1000, self.start_ns, settings.imu, settings.seed, self.translation
        )

    @property
    def _blur_rad(self) -> float:
        return self.settings.blur_px / max(self.camera.fx, self.camera.fy)

    @cached_property
    def foreground(self) -> Foreground | None:
        """The moving object, if there is one."""
        if self.settings.foreground is None:
            return None
        return make_foreground(
            self.settings.foreground,
            self.duration_s,
            0.6 * float(self.texture.mean()),
            self._texel_focal,
            self._blur_rad,
            self.settings.seed,
        )

    @property
    def lighting(self) -> Lighting:
        """The light that changes by itself."""
        return Lighting(self.settings.flicker, self.settings.cover)

    @cached_property
    def blocks(self) -> list[Block]:
        """The stretches of time that are rendered at one density."""
        times_s = np.minimum(np.arange(-(-self._duration_us // 1000) + 1) * 1e-3, self.duration_s)
        speeds = np.maximum(self._image_speeds(times_s), self.lighting.rendering_rates_hz(times_s) * self._max_step)
        return list(schedule_blocks(self._duration_us, speeds, self._max_step))

    def _positions(self, times_s: FloatArray) -> FloatArray | None:
        return None if self.translation is None else self.translation.positions(times_s)

    def sensor(self) -> EventSensor:
        """Return a fresh sensor that is adapted to the first view."""
        from cmaxslam_fbp.simulation.sensor_kernels import LANES

        settings, start = self.settings, np.zeros(1)
        sensor = EventSensor(
            self.camera,
            self.scene_map,
            settings.sensor,
            settings.seed,
            self.foreground,
            self.scene_map.calm_texels(LANES / 2 * self._max_step),
            self.lighting,
        )
        positions = self._positions(start)
        sensor.begin(
            self.motion.rotations(start)[0],
            None if self.foreground is None else self.foreground.motion.rotations(start)[0],
            None if positions is None else positions[0],
        )
        return sensor

    def chunks(self, chunk_s: float = 0.03) -> Iterator[Events]:
        """Yield the events in order of time, in pieces of about `chunk_s` (some may be empty).

        Every call starts the same recording anew; the pieces' length does not change the events.
        """
        if not 0 < chunk_s < np.inf:
            raise SimulationError(f"chunks of {chunk_s} s are impossible; give a positive length")
        settings, end_ns = self.settings, self.start_ns + self._duration_us * 1000
        sensor = self.sensor()
        readout = Readout(settings.sensor, settings.seed, self.start_ns, end_ns)
        pieces: list[Events] = []
        length_us = 0
        for block in self.blocks:
            times_s = (block.start_us + block.times_us[1:]) * 1e-6
            turned = None if self.foreground is None else self.foreground.motion.rotations(times_s)
            rotations, positions = self.motion.rotations(times_s), self._positions(times_s)
            events = sensor.advance(block, rotations, turned, self.start_ns, positions)
            pieces.append(readout.pass_events(events, self.start_ns + (block.start_us + block.length_us) * 1000))
            length_us += block.length_us
            if length_us >= chunk_s * 1e6:
                yield Events.concatenate(pieces)
                pieces, length_us = [], 0
        if pieces:
            yield Events.concatenate(pieces)


def ground_truth_times_ns(duration_ns: int) -> IntArray:
    """Return the times since the start at which poses are given: at 200 Hz, and the end itself."""
    times = np.arange(0, duration_ns + 1, NS_PER_S // _POSE_RATE_HZ, dtype=np.int64)
    if times[-1] != duration_ns:
        times = np.append(times, np.int64(duration_ns))
    return times
