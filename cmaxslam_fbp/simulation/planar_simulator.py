"""The camera that translates in front of a textured plane."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import NoRotation
from cmaxslam_fbp.simulation.plane_map import PlaneMap, make_plane_map
from cmaxslam_fbp.simulation.recording import HANDHELD_DURATION_S, TEXELS_PER_PIXEL, SimulatedRecording
from cmaxslam_fbp.simulation.scenes import FLAT_SCENES, fit_plane_image, load_plane_image
from cmaxslam_fbp.simulation.schedule import pixels_per_radian, pixels_per_tangent
from cmaxslam_fbp.simulation.sensor import EventSensor
from cmaxslam_fbp.simulation.settings import PlanarSettings
from cmaxslam_fbp.simulation.translations import SHARES, HandheldTranslation

_MAX_SIZE = 6001  # texels per side; a fisheye lens sees more of the plane than can be drawn finely
_MARGIN = 4  # texels beyond the last that is seen


class PlanarSimulation(SimulatedRecording):
    """A recording of a camera that translates, without turning, in front of the plane `z = depth_m`.

    The camera starts at rest at the origin and looks along z. The plane covers all that it can see on its way.

    Parameters
    ----------
    settings : PlanarSettings
        What to simulate; the same settings give the same bits.
    """

    settings: PlanarSettings
    translation: HandheldTranslation

    def __init__(self, settings: PlanarSettings | None = None) -> None:
        settings = settings or PlanarSettings()
        if settings.cover is not None and settings.cover.turn_deg:
            raise SimulationError("a camera that translates does not turn while it is covered; give turn_deg=0")
        duration_s = settings.duration_s or HANDHELD_DURATION_S
        translation = HandheldTranslation(duration_s, settings.peak_speed_m_s, settings.extent_m, settings.seed)
        super().__init__(settings, NoRotation(duration_s), duration_s, translation)

    def normalised_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc^T v / Z` (M, 3) per second, with the distance Z of the plane at times (M,) since the start.

        This is the velocity by which the whole image moves as `x' ~ x - dt v / Z`: what a translation of the
        normalised plane can find. The metric velocity is that of `translation`.
        """
        distances = self.settings.depth_m - self.translation.positions(t_s)[:, 2:]
        metric = np.einsum("kji,kj->ki", self.motion.rotations(t_s), self.translation.velocities(t_s))
        return np.asarray(metric / distances)

    def scene_distances(self, directions: FloatArray, t_s: float) -> FloatArray:
        """Return `(depth - p_z) / r_z` in metres (N,) for directions `r` (N, 3)."""
        return np.asarray((self.settings.depth_m - self.translation.positions([t_s])[0, 2]) / directions[:, 2])

    @cached_property
    def _sight(self) -> FloatArray:
        """Farthest that the pixels see to the right or left, and up or down, on the normalised plane (2,)."""
        return np.asarray(np.abs(self.camera.undistorted_pixels()).max(axis=(0, 1)))

    @property
    def _reach(self) -> float:
        """Half the width of the plane, in units of its depth: from where the camera may be, all it may see."""
        right, down, forward = self.settings.extent_m * SHARES / self.settings.depth_m
        return float(max(np.array([right, down]) + (1 + forward) * self._sight))

    @property
    def _texel_focal(self) -> float:
        wanted = TEXELS_PER_PIXEL * max(self.camera.fx, self.camera.fy)
        return float(min(wanted, ((_MAX_SIZE - 1) / 2 - _MARGIN) / self._reach))

    @cached_property
    def texture(self) -> npt.NDArray[np.float32]:
        """The plane: a square image of linear intensity, whose middle is at (0, 0, depth_m)."""
        size = 2 * (int(np.ceil(self._reach * self._texel_focal)) + _MARGIN) + 1
        scene = self.settings.scene
        if isinstance(scene, np.ndarray):
            return fit_plane_image(scene, size)
        if str(scene) not in FLAT_SCENES:
            return load_plane_image(scene, size)
        return FLAT_SCENES[str(scene)](size, self._texel_focal, self.settings.seed)

    @cached_property
    def plane_map(self) -> PlaneMap:
        """The scene as the pixels sample it: blurred and logarithmic."""
        return make_plane_map(
            self.texture, self._texel_focal, self.settings.depth_m, self._blur_rad * self._texel_focal
        )

    @cached_property
    def _max_step(self) -> float:
        return self.settings.max_motion_px / pixels_per_tangent(self.camera)

    def _image_speeds(self, times_s: FloatArray) -> FloatArray:
        velocities = self.normalised_velocities(times_s)
        # A point (x, y) of the normalised plane moves by `(x, y) v_z - (v_x, v_y)`.
        speeds = np.hypot(velocities[:, 0], velocities[:, 1]) + np.hypot(*self._sight) * np.abs(velocities[:, 2])
        if self.foreground is not None:
            turns = np.linalg.norm(self.foreground.motion.angular_velocities(times_s), axis=1)
            speeds += turns * (pixels_per_radian(self.camera) / pixels_per_tangent(self.camera))
        return np.asarray(speeds)

    def _new_sensor(self) -> EventSensor:
        settings = self.settings
        return EventSensor(
            self.camera, self.plane_map, settings.sensor, settings.seed, self.foreground, lighting=self.lighting
        )
