"""Compile what a run needs before its time is taken: Numba compiles at the first call, and keeps the result on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cmaxslam_fbp.config import Config
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.recording import Recording, RecordingOptions
from cmaxslam_fbp.pipeline.slam import Slam


def warm_up(config: Config, camera: Camera) -> float:
    """Run the SLAM with this configuration on a moment of made-up events; return the seconds that it took."""
    began = time.perf_counter()
    Slam(config).run(_TurningDots(config, camera))
    return time.perf_counter() - began


class _TurningDots(Recording):
    """Dots that move steadily over the sensor, for a few windows of the backend."""

    def __init__(self, config: Config, camera: Camera) -> None:
        self.path = Path("warm-up")
        self.options = RecordingOptions()
        self._camera = camera
        self._duration_s = config.backend.window_s + 3 * config.backend.stride_s
        packet = config.frontend.events_per_packet if config.frontend.packets == "count" else 0
        rate_ev_s = max(config.frontend.still_rate_ev_s, config.backend.still_rate_ev_s, 30_000.0)
        self._count = max(int(2 * rate_ev_s * self._duration_s), 2 * packet)

    @property
    def sensor_size(self) -> SensorSize:
        """That of the camera."""
        return SensorSize(self._camera.width, self._camera.height)

    def _own_calibration(self) -> Camera:
        return self._camera

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        random = np.random.default_rng(0)
        dots = random.uniform(0.2, 0.8, (50, 2)) * self.sensor_size
        t_s = np.linspace(0, self._duration_s, self._count)
        place = dots[random.integers(0, len(dots), self._count)] + 20.0 * np.column_stack([t_s, t_s])
        x, y = np.clip(place + random.normal(size=place.shape), 0, np.array(self.sensor_size) - 1).T
        polarity = random.integers(0, 2, self._count).astype(np.uint8)
        events = Events((t_s * 1e9).astype(np.int64), x.astype(np.uint16), y.astype(np.uint16), polarity)
        yield Piece(events, "the warm-up")
