"""The event sensor: what its pixels see over one block of renderings, and their events."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation.foreground import Foreground
from cmaxslam_fbp.simulation.lighting import Lighting
from cmaxslam_fbp.simulation.pixels import CircuitPixels, IdealPixels, Pixels, draw_traits
from cmaxslam_fbp.simulation.scene_map import DARKEST, SceneMap
from cmaxslam_fbp.simulation.schedule import MAX_BLOCK_RAD, Block
from cmaxslam_fbp.simulation.sensor_settings import SensorSettings


class EventSensor:
    """Pixels with their state, before a scene.

    Parameters
    ----------
    camera : Camera
        Its bearings, distortion included, are what the pixels look at.
    scene : SceneMap
        The log intensity around it, or in front of it.
    settings : SensorSettings
        The kind of pixels, their thresholds and noise.
    seed : int
        Draws the thresholds, the hot pixels and the noise.
    foreground : Foreground, optional
        An object in front of the scene.
    calm : bool array, optional
        Texels around which the scene is constant, so that the sensor may skip them (see `SceneMap.calm_texels`). They
        change no event.
    lighting : Lighting, optional
        Light that flickers or goes out.
    """

    def __init__(
        self,
        camera: Camera,
        scene: SceneMap,
        settings: SensorSettings,
        seed: int,
        foreground: Foreground | None = None,
        calm: npt.NDArray[np.bool_] | None = None,
        lighting: Lighting | None = None,
    ) -> None:
        self._camera = camera
        self._scene = scene
        self._foreground = foreground
        self._calm = np.empty(0, bool) if calm is None else calm
        self._bearings = camera.bearings().reshape(-1, 3).astype(np.float32)
        self._lighting = lighting or Lighting()
        self._lit = self._lighting.lit_pixels(camera)
        self._bright = float(scene.texels.max())
        self.traits = draw_traits(settings, camera.width * camera.height, seed)
        self._pixels: Pixels
        if settings.has_circuit:
            self._pixels = CircuitPixels(self.traits, settings, self._bright, seed)
        else:
            self._pixels = IdealPixels(self.traits)
        self._out_us = np.empty(1 << 16, np.int32)
        self._out_code = np.empty(1 << 16, np.int32)

    def begin(
        self, rotation: FloatArray, object_rotation: FloatArray | None = None, position: FloatArray | None = None
    ) -> None:
        """Let all pixels adapt to what they see from `R_wc` (3, 3) and a position (3,); no events are due there."""
        self._pixels.begin(self.render(rotation, object_rotation, position).ravel())

    def advance(
        self,
        block: Block,
        rotations: FloatArray,
        object_rotations: FloatArray | None = None,
        origin_ns: int = 0,
        positions: FloatArray | None = None,
    ) -> Events:
        """Return the events of one block, ordered by time and then by pixel.

        `rotations` (steps, 3, 3) are `R_wc` at the ends of the steps, `object_rotations` those of the foreground, and
        `positions` (steps, 3) those of the camera in metres, the origin if not given. Stamps lie in `(start, end]` of
        the block and count from `origin_ns`.
        """
        from cmaxslam_fbp.simulation.sensor_kernels import order_events

        view = self._view(rotations, object_rotations, positions, (block.start_us + block.times_us[1:]) * 1e-6)
        times = block.times_us, np.int64(block.start_us)
        first, count = 0, 0
        while True:
            first, count = self._pixels.advance(view, times, (self._out_us, self._out_code, first, count))
            if first == len(self._bearings):
                break
            self._out_us = np.concatenate([self._out_us, np.empty_like(self._out_us)])
            self._out_code = np.concatenate([self._out_code, np.empty_like(self._out_code)])
        events = Events.room_for(count)
        order_events(
            self._out_us[:count], self._out_code[:count], self._camera.width, block.length_us, block.start_us,
            origin_ns, events.t_ns, events.x, events.y, events.p,
        )  # fmt: skip
        return events

    def render(
        self, rotation: FloatArray, object_rotation: FloatArray | None = None, position: FloatArray | None = None
    ) -> SingleArray:
        """Return the log intensity (height, width) seen from `R_wc` (3, 3) and a position (3,) at the start."""
        from cmaxslam_fbp.simulation.sensor_kernels import render_levels

        turned, moved = (None if pose is None else pose[None] for pose in (object_rotation, position))
        view = self._view(np.asarray(rotation, np.float64)[None], turned, moved, np.zeros(1))
        levels = np.empty((len(self._bearings), 2), np.float32)
        render_levels(*view, levels)
        return levels[:, 1].reshape(self._camera.height, self._camera.width)

    def _view(
        self,
        rotations: FloatArray,
        object_rotations: FloatArray | None,
        positions: FloatArray | None,
        times_s: FloatArray,
    ) -> tuple[Any, Any, Any]:
        """What the kernels take for scene, foreground and light at the K renderings of a block."""
        scene = self._scene
        faces, middle = scene.face_matrices(rotations, positions)
        around = (
            scene.texels.reshape(-1), scene.size, np.float32(scene.focal), self._calm, self._bearings, faces, middle,
            scene.extents,
        )  # fmt: skip
        dark = np.float32(self._bright + np.log(DARKEST))
        light = self._lighting.covers(times_s), dark, self._lighting.flickers(times_s), self._lit
        return around, self._front_arguments(rotations, object_rotations), light

    def _front_arguments(
        self, rotations: FloatArray, object_rotations: FloatArray | None
    ) -> tuple[Any, Any, Any, Any, Any, Any]:
        """What the kernels take for the foreground: texture, rotations into its axes (9, K), cosine of its reach."""
        front = self._foreground
        if front is None or object_rotations is None:
            nothing = np.empty(0, np.float32)
            return nothing, nothing, 0, np.float32(1), np.empty((9, 0), np.float32), np.float32(2)
        matrices = np.einsum("kji,kjl->ilk", object_rotations, rotations).reshape(9, len(rotations))
        cosine = np.cos(min(front.radius_rad + MAX_BLOCK_RAD, np.pi / 2))
        return (
            front.levels.reshape(-1), front.opacity.reshape(-1), len(front.levels), np.float32(front.focal),
            np.ascontiguousarray(matrices, np.float32), np.float32(cosine),
        )  # fmt: skip
