"""Where the events of a packet come to lie on a grid of bins, under a velocity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.frontend.motion_models import MotionModel
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.warp_kernels import loops_of
from cmaxslam_fbp.geometry.camera import Camera

# An event is moved along the motion that its scene point makes in the image, which is opposite to the camera's: with
# `R(t + dt) = R(t) exp(omega dt)` a fixed point moves as `p(t + dt) = p(t) - dt omega x p(t)`. The motion models are
# written without a sign, as in the paper, so their parameters are minus the camera's velocity. This is the only place
# where the sign is turned.
CAMERA_SIGN = -1.0


@dataclass(frozen=True)
class Grid:
    """Bins over the normalised plane: row `v scale_y + offset_y`, column `u scale_x + offset_x`.

    `shape` is (rows, columns); bin (i, j) is centred at row coordinate i and column coordinate j.
    """

    shape: tuple[int, int]
    scale_x: float
    offset_x: float
    scale_y: float
    offset_y: float

    @staticmethod
    def configured(camera: Camera, config: FrontendConfig) -> Grid:
        """Return the grid that the configuration describes."""
        if config.grid == "sensor":
            return Grid.sensor(camera)
        columns, rows = config.grid_size
        return Grid.normalised(camera, (rows, columns), config.grid_step)

    @staticmethod
    def normalised(camera: Camera, shape: tuple[int, int] = (150, 200), step: float = 0.01) -> Grid:
        """Return the paper's grid: bins of `step` on the normalised plane, about the mean of the undistorted sensor."""
        mean_u, mean_v = camera.undistorted_pixels().reshape(-1, 2).mean(axis=0)
        rows, columns = shape
        return Grid(
            shape,
            1 / step,
            (columns - 1) / 2 - float(mean_u) / step,
            1 / step,
            (rows - 1) / 2 - float(mean_v) / step,
        )

    @staticmethod
    def sensor(camera: Camera) -> Grid:
        """Return the grid of CMax-SLAM: the pixels of an ideal camera with the same intrinsics and no distortion."""
        ideal = camera.without_distortion()
        return Grid((camera.height, camera.width), ideal.fx, ideal.cx, ideal.fy, ideal.cy)

    def coarser(self, factor: int) -> Grid:
        """Return a grid over the same field with bins `factor` times as wide."""
        rows, columns = (-(-size // factor) for size in self.shape)
        # The outer edge of the first bin stays where it is: coordinate -1/2.
        shift = 0.5 / factor - 0.5
        return Grid(
            (rows, columns),
            self.scale_x / factor,
            self.offset_x / factor + shift,
            self.scale_y / factor,
            self.offset_y / factor + shift,
        )

    def speed_of_one_bin(self, dt_s: float) -> float:
        """Return the speed, at unit depth, that moves an event by one bin over a time."""
        return 1 / (max(self.scale_x, self.scale_y) * dt_s)


class VelocityWarp:
    """Moves the events of a packet to its reference time by a motion model, whose P parameters are `w`.

    Parameters
    ----------
    model : the motion model
    grid : the bins
    packet : the N events
    """

    def __init__(self, model: MotionModel, grid: Grid, packet: PacketEvents) -> None:
        self._model, self.parameter_count = model, model.parameter_count
        self._loops = loops_of(type(model))  # type: ignore[arg-type]  # mypy takes classes for unhashable
        self._events = packet.x, packet.y, packet.dt_s
        self._grid = np.array([grid.scale_x, grid.offset_x, grid.scale_y, grid.offset_y], np.float32)

    def __len__(self) -> int:
        return len(self._events[0])

    def points(self, w: FloatArray, out: SingleArray) -> None:
        """Write the bin coordinates (N, 2), row before column."""
        self._loops.points(*self._events, _single(w), self._grid, out.reshape(-1))

    def pullback(self, w: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return the gradient (P,) of a function whose gradient with respect to the points is `points_bar` (N, 2)."""
        gradient = np.empty(len(w))
        self._loops.pullback(*self._events, _single(w), self._grid, points_bar.reshape(-1), gradient, _NO_MATRIX)
        return gradient

    def tangent(self, w: FloatArray, axis: int, out: SingleArray) -> None:
        """Write the derivative (N, 2) of the points with respect to the parameter `axis`."""
        self._loops.tangent(*self._events, _single(w), axis, self._grid, out.reshape(-1))

    def pullback_curvature(self, w: FloatArray, points_bar: SingleArray, curvatures: SingleArray) -> FloatArray:
        """Return the Hessian (P, P) of a function whose Hessian with respect to each point is `curvatures` (N, 3).

        Its columns are row-row, row-column and column-column; `points_bar` (N, 2) is the gradient.
        """
        hessian = np.empty((len(w), len(w)))
        flat = points_bar.reshape(-1), curvatures.reshape(-1)
        self._loops.curvature(*self._events, _single(w), self._grid, *flat, hessian)
        return hessian

    def pullback_outer(self, w: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with the part `g_i` that each event has in the gradient of `pullback`."""
        gradient, outer = np.empty(len(w)), np.empty((len(w), len(w)))
        self._loops.pullback(*self._events, _single(w), self._grid, points_bar.reshape(-1), gradient, outer)
        return outer

    def arrays(self) -> tuple[SingleArray, ...]:
        """Return `x`, `y` and `t_ref - t` (N,), for `tensor_points`."""
        return self._events

    def tensor_points(self, w: Any, *arrays: Any) -> Any:
        """Return the bin coordinates (N, 2), the same bits as `points`, for parameters (P, 1) or (P, N): for autograd.

        `w` and the `arrays` are tensors.
        """
        from cmaxslam_fbp.fbp.torch_module import torch

        scale_x, offset_x, scale_y, offset_y = self._grid.tolist()
        x, y, dt_s = arrays
        q1, q2, q3 = self._model.transform((x, y, 1.0), dt_s, w)
        inverse = 1.0 / q3
        rows, columns = q2 * inverse * scale_y + offset_y, q1 * inverse * scale_x + offset_x
        return torch.stack([rows, columns], dim=-1)


_NO_MATRIX: FloatArray = np.empty((0, 0))


def _single(vector: FloatArray) -> tuple[np.float32, ...]:
    return tuple(np.float32(value) for value in vector)
