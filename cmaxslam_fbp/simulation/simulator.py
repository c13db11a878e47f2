"""The camera that turns inside a panorama, and the one that a hand turns and moves inside a room."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.cube_map import make_cube_map
from cmaxslam_fbp.simulation.motions import HandheldMotion, Motion, SampledMotion, TurnedMotion
from cmaxslam_fbp.simulation.recording import HANDHELD_DURATION_S, TEXELS_PER_PIXEL, SimulatedRecording
from cmaxslam_fbp.simulation.room import RoomMap, furnish, make_room_map
from cmaxslam_fbp.simulation.scene_map import SceneMap
from cmaxslam_fbp.simulation.scenes import draw_scene
from cmaxslam_fbp.simulation.settings import RoomSettings, SimulationSettings
from cmaxslam_fbp.simulation.translations import HandTranslation, SampledTranslation, Translation

_TOO_NEAR = 0.1  # of the distance of a room's front wall


class Simulation(SimulatedRecording):
    """A recording of a camera that turns inside a panorama.

    Parameters
    ----------
    settings : SimulationSettings
        What to simulate; the same settings give the same bits.
    """

    settings: SimulationSettings
    most_texels = 900.0  # of a cube, whose six faces are all in memory

    def __init__(self, settings: SimulationSettings | None = None) -> None:
        self.settings = settings = settings or SimulationSettings()
        motion, translation = self._moves()
        duration_s = motion.duration_s if settings.duration_s is None else settings.duration_s
        if duration_s > motion.duration_s + 1e-6:
            raise SimulationError(
                f"the trajectory lasts {motion.duration_s:.3f} s, less than the {duration_s} s asked for; "
                "give a shorter duration"
            )
        super().__init__(settings, motion, duration_s, translation)

    def _turns(self) -> SampledMotion | HandheldMotion:
        """Return the rotation along the given trajectory, or of a random hand."""
        settings = self.settings
        if settings.trajectory is not None:
            return SampledMotion(settings.trajectory)
        duration_s = settings.duration_s or HANDHELD_DURATION_S
        return HandheldMotion(duration_s, settings.peak_speed_deg_s, settings.extent_deg, settings.seed)

    def _moves(self) -> tuple[Motion, Translation | None]:
        """Return the rotation, and the path where the camera does not only turn."""
        cover = self.settings.cover
        if cover is None or not cover.turn_deg:
            return self._turns(), None
        dark_s = cover.start_s + cover.fade_s, cover.start_s + cover.length_s - cover.fade_s
        return TurnedMotion(self._turns(), *dark_s, cover.turn_deg), None

    @cached_property
    def panorama(self) -> SingleArray:
        """The scene: an equirectangular image of linear intensity."""
        focal = TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy)
        return draw_scene(self.settings.scene, focal, self.settings.seed)

    @property
    def texture(self) -> SingleArray:
        """The panorama."""
        return self.panorama

    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        speeds = np.linalg.norm(self.motion.angular_velocities(times_s), axis=1)
        if self.foreground is not None:
            speeds += np.linalg.norm(self.foreground.motion.angular_velocities(times_s), axis=1)
        return speeds

    @cached_property
    def scene_map(self) -> SceneMap:
        """The panorama on the faces of a cube."""
        return make_cube_map(self.panorama, self._texel_focal, self._blur_rad)


class RoomSimulation(Simulation):
    """A recording of a camera that turns and moves inside a room, whose walls show the panorama at the origin.

    It starts at the origin and looks along z, at the front wall.

    Parameters
    ----------
    settings : RoomSettings
        What to simulate; the same settings give the same bits.
    """

    settings: RoomSettings
    translation: Translation
    most_texels = np.inf

    def __init__(self, settings: RoomSettings | None = None) -> None:
        super().__init__(settings or RoomSettings())

    def _moves(self) -> tuple[Motion, Translation]:
        settings, motion = self.settings, self._turns()
        if isinstance(motion, SampledMotion):
            assert settings.trajectory is not None
            return motion, SampledTranslation(settings.trajectory, motion)
        return motion, HandTranslation(motion, settings.lever_m, settings.seed)

    @cached_property
    def scene_map(self) -> RoomMap:
        """The walls and boards of the room."""
        settings = self.settings
        rectangles = furnish(settings.room, settings.scene_distance_m, settings.seed)
        return make_room_map(rectangles, self.panorama, self._texel_focal, self._blur_rad)

    def scene_distances(self, directions: FloatArray, t_s: float) -> FloatArray:
        """Return the distances in metres (N,) of walls and boards along unit directions (N, 3)."""
        return self.scene_map.distances(directions, self.translation.positions([t_s])[0])

    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        nearest = self.scene_map.nearest_m(self.translation.positions(times_s))
        if nearest.min() < _TOO_NEAR * self.settings.scene_distance_m:
            place = int(np.argmin(nearest))
            raise SimulationError(
                f"at {times_s[place]:.2f} s the camera is {max(nearest[place], 0):.3f} m from a wall or behind it; "
                "give a larger --scene-distance, or a smaller lever"
            )
        return super()._image_speeds(times_s) + np.linalg.norm(self.translation.velocities(times_s), axis=1) / nearest
