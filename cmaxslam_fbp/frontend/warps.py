"""How events move under a velocity: the three motion models, on a grid of bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.geometry.camera import Camera

ModelName = str

# An event is moved along the motion that its scene point makes in the image, which is opposite to the camera's: with
# `R(t + dt) = R(t) exp(omega dt)` a fixed point moves as `p(t + dt) = p(t) - dt omega x p(t)`. The warps are written
# without a sign, as in the paper, so their parameters are minus the camera's velocity. This is the only place
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
        return Grid((camera.height, camera.width), camera.fx, camera.cx, camera.fy, camera.cy)

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


@lru_cache(maxsize=3)
def _kernels(model: ModelName) -> tuple[Callable[..., Any], ...]:
    """Return the compiled warp, pullback, tangent, pulled-back curvature and pulled-back outer product of a model."""
    from cmaxslam_fbp.frontend import warp_kernels as kernels

    number = {
        "rotation": kernels.ROTATION,
        "exact_rotation": kernels.EXACT_ROTATION,
        "translation": kernels.TRANSLATION,
    }[model]
    return (
        kernels.make_warp(number),
        kernels.make_pullback(number),
        kernels.make_tangent(number),
        kernels.make_pullback_curvature(number),
        kernels.make_pullback_outer(number),
    )


class VelocityWarp:
    """Moves the events of a packet to a reference time by a velocity `w` (3,), in the warp's own sign.

    `rotation`: `x' ~ x + (t_ref - t) w x x`, the paper's first-order model;
    `exact_rotation`: `x' ~ exp((t_ref - t) [w]x) x`;
    `translation`: `x' ~ x + (t_ref - t) w`; each with `x = (x, y, 1)`, divided by the third coordinate.

    Parameters
    ----------
    model : the motion model
    grid : the bins
    x, y : (N,) float32, points of the normalised plane
    dt_s : (N,) float32, `t_ref - t` in seconds
    """

    parameter_count = 3

    def __init__(self, model: ModelName, grid: Grid, x: SingleArray, y: SingleArray, dt_s: SingleArray) -> None:
        self._warp, self._pullback, self._tangent, self._pullback_curvature, self._pullback_outer = _kernels(model)
        self._model = model
        self._events = x, y, dt_s
        self._grid = np.array([grid.scale_x, grid.offset_x, grid.scale_y, grid.offset_y], np.float32)

    def __len__(self) -> int:
        return len(self._events[0])

    def points(self, w: FloatArray, out: SingleArray) -> None:
        """Write the bin coordinates (N, 2), row before column."""
        self._warp(*self._events, *_single(w), self._grid, out.reshape(-1))

    def pullback(self, w: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return the gradient (3,) of a function whose gradient with respect to the points is `points_bar` (N, 2)."""
        gradient = np.empty(3)
        self._pullback(*self._events, *_single(w), self._grid, points_bar.reshape(-1), gradient)
        return gradient

    def tangent(self, w: FloatArray, axis: int, out: SingleArray) -> None:
        """Write the derivative (N, 2) of the points with respect to the parameter `axis`."""
        self._tangent(*self._events, *_single(w), axis, self._grid, out.reshape(-1))

    def pullback_curvature(self, w: FloatArray, points_bar: SingleArray, curvatures: SingleArray) -> FloatArray:
        """Return the Hessian (3, 3) of a function whose Hessian with respect to each point is `curvatures` (N, 3).

        Its columns are row-row, row-column and column-column; `points_bar` (N, 2) is the gradient.
        """
        hessian = np.empty((3, 3))
        flat = points_bar.reshape(-1), curvatures.reshape(-1)
        self._pullback_curvature(*self._events, *_single(w), self._grid, *flat, hessian)
        return hessian

    def pullback_outer(self, w: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (3, 3) with the part `g_i` that each event has in the gradient of `pullback`."""
        outer = np.empty((3, 3))
        self._pullback_outer(*self._events, *_single(w), self._grid, points_bar.reshape(-1), outer)
        return outer

    def arrays(self) -> tuple[SingleArray, ...]:
        """Return `x`, `y` and `t_ref - t` (N,), for `tensor_points`."""
        return self._events

    def tensor_points(self, w: Any, *arrays: Any) -> Any:
        """Return the bin coordinates (N, 2) for tensors of parameters (3, 1) or (3, N): the same, for autograd."""
        from cmaxslam_fbp.frontend.tensor_warps import tensor_points

        return tensor_points(self._model, self._grid.tolist(), w, *arrays)


def _single(vector: FloatArray) -> tuple[np.float32, ...]:
    return tuple(np.float32(value) for value in vector)
