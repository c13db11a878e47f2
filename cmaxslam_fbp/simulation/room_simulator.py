"""The camera that a hand turns and moves inside a room."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.simulation.motions import HandheldMotion, Motion, SampledMotion
from cmaxslam_fbp.simulation.recording import HANDHELD_DURATION_S, TEXELS_PER_PIXEL, SimulatedRecording
from cmaxslam_fbp.simulation.room import RoomMap, furnish, make_room_map
from cmaxslam_fbp.simulation.scenes import draw_scene
from cmaxslam_fbp.simulation.schedule import pixels_per_radian
from cmaxslam_fbp.simulation.sensor import EventSensor
from cmaxslam_fbp.simulation.settings import RoomSettings
from cmaxslam_fbp.simulation.translations import HandTranslation, SampledTranslation, Translation

_TOO_NEAR = 0.1  # of the front wall's distance


class RoomSimulation(SimulatedRecording):
    """A recording of a camera that turns and moves inside a room.

    It starts at the origin and looks along z, at the front wall.

    Parameters
    ----------
    settings : RoomSettings
        What to simulate; the same settings give the same bits.
    """

    settings: RoomSettings

    def __init__(self, settings: RoomSettings | None = None) -> None:
        settings = settings or RoomSettings()
        motion: Motion
        translation: Translation
        if settings.trajectory is not None:
            motion = SampledMotion(settings.trajectory)
            translation = SampledTranslation(settings.trajectory, motion)
        else:
            duration_s = settings.duration_s or HANDHELD_DURATION_S
            motion = HandheldMotion(duration_s, settings.peak_speed_deg_s, settings.extent_deg, settings.seed)
            translation = HandTranslation(motion, settings.lever_m, settings.seed)
        duration_s = motion.duration_s if settings.duration_s is None else settings.duration_s
        if duration_s > motion.duration_s + 1e-6:
            raise SimulationError(
                f"the trajectory lasts {motion.duration_s:.3f} s, less than the {duration_s} s asked for; "
                "give a shorter duration"
            )
        super().__init__(settings, motion, duration_s, translation)

    @cached_property
    def texture(self) -> npt.NDArray[np.float32]:
        """The scene: the panorama that the room shows at the origin, linear intensity."""
        return draw_scene(
            self.settings.scene, TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy), self.settings.seed
        )

    @cached_property
    def room_map(self) -> RoomMap:
        """The room as the pixels sample it."""
        settings = self.settings
        rectangles = furnish(settings.room, settings.scene_distance_m, settings.seed)
        return make_room_map(rectangles, self.texture, self._texel_focal, self._blur_rad)

    def distance_panorama(self, width: int, position: npt.ArrayLike = (0.0, 0.0, 0.0)) -> FloatArray:
        """Return the true distances in metres (width / 2, width) from a position, as an equirectangular image."""
        rows, columns = np.mgrid[: width // 2, :width]
        directions = Equirectangular(width, width // 2).unproject(np.stack([columns, rows], axis=-1))
        return self.room_map.distances(directions.reshape(-1, 3), position).reshape(width // 2, width)

    def scene_distances(self, directions: FloatArray, t_s: float) -> FloatArray:
        """Return the distances in metres (N,) of walls and boards along unit directions (N, 3)."""
        assert self.translation is not None
        return self.room_map.distances(directions, self.translation.positions([t_s])[0])

    @property
    def _texel_focal(self) -> float:
        return TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy)

    @cached_property
    def _max_step(self) -> float:
        return self.settings.max_motion_px / pixels_per_radian(self.camera)

    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        assert self.translation is not None
        nearest = self.room_map.nearest_m(self.translation.positions(times_s))
        if nearest.min() < _TOO_NEAR * self.settings.scene_distance_m:
            place = int(np.argmin(nearest))
            raise SimulationError(
                f"at {times_s[place]:.2f} s the camera is {max(nearest[place], 0):.3f} m from a wall or behind it; "
                "give a larger --scene-distance, or a smaller lever"
            )
        speeds = np.linalg.norm(self.motion.angular_velocities(times_s), axis=1)
        speeds += np.linalg.norm(self.translation.velocities(times_s), axis=1) / nearest
        if self.foreground is not None:
            speeds += np.linalg.norm(self.foreground.motion.angular_velocities(times_s), axis=1)
        return speeds

    def _new_sensor(self) -> EventSensor:
        settings = self.settings
        return EventSensor(
            self.camera, self.room_map, settings.sensor, settings.seed, self.foreground, lighting=self.lighting
        )
