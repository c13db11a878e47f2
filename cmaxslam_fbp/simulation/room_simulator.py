"""The camera that a hand turns and moves inside a room."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import Motion, SampledMotion
from cmaxslam_fbp.simulation.room import RoomMap, furnish, make_room_map
from cmaxslam_fbp.simulation.settings import RoomSettings
from cmaxslam_fbp.simulation.simulator import Simulation
from cmaxslam_fbp.simulation.translations import HandTranslation, SampledTranslation, Translation

_TOO_NEAR = 0.1  # of the front wall's distance


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
