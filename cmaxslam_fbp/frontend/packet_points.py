"""The events of a packet as the warps need them: points of the normalised plane and times, in room that is kept."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend import packet_kernels as kernels
from cmaxslam_fbp.frontend.warps import Grid, ModelName, VelocityWarp
from cmaxslam_fbp.geometry.camera import Camera

Polarity = Literal["ignored", "signed"]


class PacketPoints:
    """The packet that is worked on, of one camera.

    Attributes
    ----------
    x, y : (N,) float32
        Points of the normalised plane.
    dt_s : (N,) float32
        `t_ref - t`.
    weights : (N,) float32 or None
        The events' signs, or ones.
    """

    def __init__(self, camera: Camera, polarity: Polarity = "ignored") -> None:
        self._table = camera.undistorted_pixels().astype(np.float32).reshape(-1)
        self._size = camera.width, camera.height
        self._signed = polarity == "signed"
        self._room: SingleArray = np.empty((4, 0), np.float32)
        self.x = self.y = self.dt_s = self._room[0]
        self.weights: SingleArray | None = None

    def __len__(self) -> int:
        return len(self.x)

    def load(self, packet: Packet) -> None:
        """Take in the events of a packet, instead of those before."""
        events, count = packet.events, len(packet.events)
        if count > self._room.shape[1]:
            self._room = np.empty((4, count + count // 4), np.float32)
        self.x, self.y, self.dt_s, signs = self._room[:, :count]
        outside = kernels.look_up(
            events.t_ns, events.x, events.y, packet.t_ns, self._table, *self._size, self.x, self.y, self.dt_s
        )
        if outside:
            width, height = self._size
            raise RecordingError(
                f"{outside:,} of {count:,} events lie outside the camera's {width} x {height} pixels: "
                "the calibration is that of another sensor"
            )
        if self._signed:
            kernels.signs(events.p, signs)
            self.weights = signs

    def warp(self, model: ModelName, grid: Grid) -> VelocityWarp:
        """Return the warp of the events onto a grid."""
        return VelocityWarp(model, grid, self.x, self.y, self.dt_s)

    def unit(self, grid: Grid) -> float:
        """Return the speed that moves the packet's first or last event by one bin."""
        reach_s = max(abs(float(self.dt_s[0])), abs(float(self.dt_s[-1])))
        return 1 / (max(grid.scale_x, grid.scale_y) * reach_s)
