"""The camera that turns inside a panorama."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.cube_map import CubeMap, find_calm_texels, make_cube_map
from cmaxslam_fbp.simulation.motions import HandheldMotion, Motion, SampledMotion, TurnedMotion
from cmaxslam_fbp.simulation.recording import HANDHELD_DURATION_S, TEXELS_PER_PIXEL, SimulatedRecording
from cmaxslam_fbp.simulation.scenes import draw_scene
from cmaxslam_fbp.simulation.schedule import pixels_per_radian
from cmaxslam_fbp.simulation.sensor import EventSensor
from cmaxslam_fbp.simulation.settings import SimulationSettings

_MAX_CUBE_FOCAL = 900.0


class Simulation(SimulatedRecording):
    """A recording of a camera that turns inside a panorama.

    Parameters
    ----------
    settings : SimulationSettings
        What to simulate; the same settings give the same bits.
    """

    settings: SimulationSettings

    def __init__(self, settings: SimulationSettings | None = None) -> None:
        settings = settings or SimulationSettings()
        motion: Motion
        if settings.trajectory is not None:
            motion = SampledMotion(settings.trajectory)
        else:
            motion = HandheldMotion(
                settings.duration_s or HANDHELD_DURATION_S,
                settings.peak_speed_deg_s,
                settings.extent_deg,
                settings.seed,
            )
        duration_s = motion.duration_s if settings.duration_s is None else settings.duration_s
        if duration_s > motion.duration_s + 1e-6:
            raise SimulationError(
                f"the trajectory lasts {motion.duration_s:.3f} s, less than the {duration_s} s asked for; "
                "give a shorter duration"
            )
        if settings.cover is not None and settings.cover.turn_deg:
            cover = settings.cover
            dark_s = cover.start_s + cover.fade_s, cover.start_s + cover.length_s - cover.fade_s
            motion = TurnedMotion(motion, *dark_s, cover.turn_deg)
        super().__init__(settings, motion, duration_s)

    @cached_property
    def panorama(self) -> npt.NDArray[np.float32]:
        """The scene: an equirectangular image of linear intensity."""
        return draw_scene(
            self.settings.scene, TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy), self.settings.seed
        )

    @property
    def texture(self) -> npt.NDArray[np.float32]:
        """The panorama."""
        return self.panorama

    @property
    def _texel_focal(self) -> float:
        return min(TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy), _MAX_CUBE_FOCAL)

    @cached_property
    def _max_step(self) -> float:
        return self.settings.max_motion_px / pixels_per_radian(self.camera)

    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        speeds = np.linalg.norm(self.motion.angular_velocities(times_s), axis=1)
        if self.foreground is not None:
            speeds += np.linalg.norm(self.foreground.motion.angular_velocities(times_s), axis=1)
        return speeds

    @cached_property
    def cube_map(self) -> CubeMap:
        """The scene as the pixels sample it: blurred, logarithmic, on the faces of a cube."""
        return make_cube_map(self.panorama, self._texel_focal, self._blur_rad)

    def _new_sensor(self) -> EventSensor:
        from cmaxslam_fbp.simulation.sensor_kernels import LANES

        calm = find_calm_texels(self.cube_map, LANES / 2 * self._max_step)
        settings = self.settings
        return EventSensor(
            self.camera, self.cube_map, settings.sensor, settings.seed, self.foreground, calm, self.lighting
        )
