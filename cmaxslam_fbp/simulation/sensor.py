"""The event sensor: what every pixel remembers, and the events of one block of renderings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation.foreground import Foreground
from cmaxslam_fbp.simulation.scene_map import SceneMap
from cmaxslam_fbp.simulation.schedule import MAX_BLOCK_RAD, Block


@dataclass(frozen=True)
class SensorSettings:
    """The imperfections of an event sensor.

    Attributes
    ----------
    contrast_on, contrast_off : float
        Mean thresholds: the change of log intensity that causes an event.
    contrast_sigma : float
        Standard deviation of the thresholds over the pixels, for ON and OFF independently.
    refractory_s : float
        Time after an event in which a pixel is blind. (In the ECD no two events of a pixel are closer than 1.3 ms.)
    noise_rate_hz : float
        Background activity: events per second and pixel that nothing causes, of random polarity.
    hot_pixels : int
        Number of pixels that fire at `hot_pixel_rate_hz` instead.
    hot_pixel_rate_hz : float
        Their rate in events per second.
    """

    contrast_on: float = 0.3
    contrast_off: float = 0.3
    contrast_sigma: float = 0.03
    refractory_s: float = 1e-3
    noise_rate_hz: float = 0.2
    hot_pixels: int = 5
    hot_pixel_rate_hz: float = 200.0

    def __post_init__(self) -> None:
        for name in ("contrast_on", "contrast_off"):
            if not MIN_CONTRAST <= getattr(self, name) < np.inf:
                raise SimulationError(
                    f"{name}={getattr(self, name)} is impossible; give a threshold of {MIN_CONTRAST} or more"
                )
        for name in ("contrast_sigma", "refractory_s", "noise_rate_hz", "hot_pixels", "hot_pixel_rate_hz"):
            if not 0 <= getattr(self, name) < np.inf:
                raise SimulationError(f"{name}={getattr(self, name)} is impossible; give 0 or more")


MIN_CONTRAST = 0.01  # no pixel's threshold falls below it, whatever the spread


class EventSensor:
    """Pixels with their state: thresholds, reference level, last event, next noise event.

    Parameters
    ----------
    camera : Camera
        Its bearings, distortion included, are what the pixels look at.
    scene : SceneMap
        The log intensity around it, or in front of it.
    settings : SensorSettings
        Thresholds and noise.
    seed : int
        Draws the thresholds, the hot pixels and the noise.
    foreground : Foreground, optional
        An object in front of the scene.
    calm : bool array, optional
        Texels around which the scene is constant, so that the sensor may skip them (see `find_calm_texels`). They
        change no event.
    """

    def __init__(
        self,
        camera: Camera,
        scene: SceneMap,
        settings: SensorSettings,
        seed: int,
        foreground: Foreground | None = None,
        calm: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        from cmaxslam_fbp.simulation.sensor_kernels import LONG_AGO_US, first_noise

        count = camera.width * camera.height
        if settings.hot_pixels > count:
            raise SimulationError(f"{settings.hot_pixels} hot pixels do not fit on a sensor of {count}; give fewer")
        self._camera = camera
        self._scene = scene
        self._foreground = foreground
        self._calm = np.empty(0, bool) if calm is None else calm
        self._bearings = camera.bearings().reshape(-1, 3).astype(np.float32)
        self._refractory_us = np.int64(round(settings.refractory_s * 1e6))
        rng = np.random.default_rng([seed, 0x53656E73])
        spread = settings.contrast_sigma * rng.standard_normal((2, count))
        self.thresholds_on = np.maximum(settings.contrast_on + spread[0], MIN_CONTRAST).astype(np.float32)
        self.thresholds_off = np.maximum(settings.contrast_off + spread[1], MIN_CONTRAST).astype(np.float32)
        self.noise_rates_hz = np.full(count, float(settings.noise_rate_hz))
        self.hot_pixels = np.sort(rng.choice(count, int(settings.hot_pixels), replace=False))
        self.noise_rates_hz[self.hot_pixels] = settings.hot_pixel_rate_hz
        self.random_states = rng.integers(0, 2**64, count, dtype=np.uint64)
        self.noise_times_us = np.empty(count)
        first_noise(self.noise_rates_hz, self.random_states, self.noise_times_us)
        self._last_us = np.full(count, LONG_AGO_US, np.int64)
        self._reference = np.zeros(count, np.float32)
        self._previous = np.zeros(count, np.float32)
        self._out_us = np.empty(1 << 16, np.int32)
        self._out_code = np.empty(1 << 16, np.int32)

    def begin(
        self, rotation: FloatArray, object_rotation: FloatArray | None = None, position: FloatArray | None = None
    ) -> None:
        """Let all pixels adapt to what they see from `R_wc` (3, 3) and a position (3,); no events are due there."""
        levels = self.render(rotation, object_rotation, position)
        self._reference[:] = levels.ravel()
        self._previous[:] = levels.ravel()

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
        from cmaxslam_fbp.simulation.sensor_kernels import advance_pixels, order_events

        faces, middle = self._scene.face_matrices(rotations, positions)
        front = self._front_arguments(rotations, object_rotations)
        first, count = 0, 0
        while True:
            first, count = advance_pixels(
                self._scene.texels.reshape(-1), self._scene.size, np.float32(self._scene.focal), self._calm,
                self._scene.extents, self._bearings, faces, middle, *front, block.times_us, np.int64(block.start_us),
                self.thresholds_on, self.thresholds_off, self.noise_rates_hz, self._refractory_us,
                self._reference, self._previous, self._last_us, self.noise_times_us, self.random_states,
                self._out_us, self._out_code, first, count,
            )  # fmt: skip
            if first == len(self._bearings):
                break
            self._out_us = np.concatenate([self._out_us, np.empty_like(self._out_us)])
            self._out_code = np.concatenate([self._out_code, np.empty_like(self._out_code)])
        events = Events(
            np.empty(count, np.int64), np.empty(count, np.uint16), np.empty(count, np.uint16), np.empty(count, np.uint8)
        )
        order_events(
            self._out_us[:count], self._out_code[:count], self._camera.width, block.length_us, block.start_us,
            origin_ns, events.t_ns, events.x, events.y, events.p,
        )  # fmt: skip
        return events

    def render(
        self, rotation: FloatArray, object_rotation: FloatArray | None = None, position: FloatArray | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the log intensity (height, width) that the pixels see from `R_wc` (3, 3) and a position (3,)."""
        from cmaxslam_fbp.simulation.sensor_kernels import render_levels

        rotations = np.asarray(rotation, np.float64)[None]
        faces, middle = self._scene.face_matrices(rotations, None if position is None else position[None])
        front = self._front_arguments(rotations, None if object_rotation is None else object_rotation[None])
        levels = np.empty((len(self._bearings), 2), np.float32)
        render_levels(
            self._scene.texels.reshape(-1), self._scene.size, np.float32(self._scene.focal), self._calm,
            self._scene.extents, self._bearings, faces, middle, *front, levels,
        )  # fmt: skip
        return levels[:, 1].reshape(self._camera.height, self._camera.width)

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
