"""The events of a packet as the warps need them: points of the normalised plane with their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.geometry.camera import Camera


@dataclass(frozen=True, eq=False)
class PacketEvents:
    """N events of a packet, ordered by time.

    Attributes
    ----------
    x, y : (N,) float32
        Points of the normalised plane.
    dt_s : (N,) float32
        `t_ref - t`.
    weights : (N,) float32 or None
        The events' signs; None for ones.
    """

    x: SingleArray
    y: SingleArray
    dt_s: SingleArray
    weights: SingleArray | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def reach_s(self) -> float:
        """Time from the reference to the first or the last event, whichever is further."""
        return max(abs(float(self.dt_s[0])), abs(float(self.dt_s[-1])))


class PacketLookup:
    """Looks up the undistorted points of packets of one camera, in memory that is used again.

    Parameters
    ----------
    camera : Camera
        With its calibration.
    polarity : "ignored" or "signed"
        Whether events have weights.
    """

    def __init__(self, camera: Camera, polarity: Literal["ignored", "signed"] = "ignored") -> None:
        self._table = camera.undistorted_pixels().astype(np.float32).reshape(-1)
        self._size = camera.width, camera.height
        self._is_signed = polarity == "signed"
        self._memory: SingleArray = np.empty((4, 0), np.float32)

    def __call__(self, packet: Packet) -> PacketEvents:
        """Return the events of a packet: views that hold until the next call."""
        events, count = packet.events, len(packet.events)
        if count > self._memory.shape[1]:
            self._memory = np.empty((4, count + count // 4), np.float32)
        x, y, dt_s, signs = self._memory[:, :count]
        outside = _look_up(events.t_ns, events.x, events.y, packet.t_ns, self._table, *self._size, x, y, dt_s)
        if outside:
            width, height = self._size
            raise RecordingError(
                f"{outside:,} of {count:,} events lie outside the camera's {width} x {height} pixels: "
                "the calibration is that of another sensor"
            )
        if not self._is_signed:
            return PacketEvents(x, y, dt_s)
        signs[:] = np.where(events.p, 1, -1)
        return PacketEvents(x, y, dt_s, signs)


_SECONDS_PER_NS = np.float32(1e-9)


@compiled
def _look_up(
    t_ns: Any, x: Any, y: Any, t_ref_ns: int, table: Any, width: int, height: int, out_x: Any, out_y: Any, out_dt: Any
) -> int:
    """Write the undistorted points and `t_ref - t` in seconds; return how many events lie outside the sensor.

    `table` (2 width height,) holds the point of every pixel, row by row. Events outside the sensor get its first one.
    """
    outside = 0
    for i in range(len(x)):
        column, row = np.int64(x[i]), np.int64(y[i])
        if column >= width or row >= height:
            outside += 1
            column = row = np.int64(0)
        place = 2 * (row * width + column)
        out_x[i] = table[place]
        out_y[i] = table[place + 1]
        out_dt[i] = np.float32(t_ref_ns - t_ns[i]) * _SECONDS_PER_NS
    return outside
