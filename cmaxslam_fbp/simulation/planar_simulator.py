"""The camera that translates in front of a textured plane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.motions import NoRotation
from cmaxslam_fbp.simulation.recording import HANDHELD_DURATION_S, TEXELS_PER_PIXEL, SimulatedRecording
from cmaxslam_fbp.simulation.scene_map import SceneMap, log_levels, quantise_levels
from cmaxslam_fbp.simulation.scenes import FLAT_SCENES
from cmaxslam_fbp.simulation.scenes.images import fit_plane_image, load_plane_image
from cmaxslam_fbp.simulation.schedule import pixels_per_radian, pixels_per_tangent
from cmaxslam_fbp.simulation.settings import PlanarSettings
from cmaxslam_fbp.simulation.translations import SHARES, HandheldTranslation

_MAX_SIZE = 6001  # texels per side; a fisheye lens sees more of the plane than can be drawn finely
_MARGIN = 4  # texels beyond the last that is seen
# Takes every bearing to the direction z, which is that of the first face: a plane has no other.
_AHEAD = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1], np.float32)


@dataclass(frozen=True, eq=False)
class PlaneMap(SceneMap):
    """Log intensity `texels` (1, size, size) on the plane `z = depth_m` of the world.

    The point (X, Y, depth_m) is the texel at `focal (X, Y) / depth_m + (size - 1) / 2`: seen from the origin this is
    one face of a cube map.
    """

    depth_m: float

    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the homographies (1, 9, K) from bearings to the plane, in units of its depth, and the face's choice.

        A camera at `p` with the rotation `R_wc` sees along the bearing `b` the point `p + s R b`, with
        `s = (depth - p_z) / (R b)_z`. In homogeneous coordinates, relative to the depth, that is `A R b` with
        `A = [[1 - p_z, 0, p_x], [0, 1 - p_z, p_y], [0, 0, 1]]`.
        """
        steps = len(rotations)
        p = np.zeros((steps, 3)) if positions is None else positions / self.depth_m
        shifts = np.tile(np.eye(3), (steps, 1, 1))
        shifts[:, 0, 0] = shifts[:, 1, 1] = 1 - p[:, 2]
        shifts[:, :2, 2] = p[:, :2]
        matrices = np.einsum("kij,kjl->ilk", shifts, rotations).reshape(1, 9, steps)
        return np.ascontiguousarray(matrices, np.float32), _AHEAD


def make_plane_map(image: SingleArray, focal: float, depth_m: float, blur_px: float) -> PlaneMap:
    """Turn a square image of linear intensity, `focal` pixels per unit of tangent, into its blurred logarithm.

    The blur, a Gaussian of `blur_px` of the image's pixels, is that of lens and pixel; it is applied to the intensity,
    as light adds, before the logarithm.
    """
    import cv2

    blurred = cv2.GaussianBlur(image, (0, 0), blur_px) if blur_px > 0 else image
    texels = np.ascontiguousarray(log_levels(np.asarray(blurred, np.float32))[None])
    quantise_levels(texels)
    return PlaneMap(texels, float(focal), float(depth_m))


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
    def texture(self) -> SingleArray:
        """The plane: a square image of linear intensity, whose middle is at (0, 0, depth_m)."""
        size = 2 * (int(np.ceil(self._reach * self._texel_focal)) + _MARGIN) + 1
        scene = self.settings.scene
        if isinstance(scene, np.ndarray):
            return fit_plane_image(scene, size)
        if str(scene) not in FLAT_SCENES:
            return load_plane_image(scene, size)
        return FLAT_SCENES[str(scene)](size, self._texel_focal, self.settings.seed)

    @cached_property
    def scene_map(self) -> PlaneMap:
        """The plane as the pixels sample it."""
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
