"""The directions that all pixels see, and how they follow the parameters of a lens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.lens_parameters import LensParameters
from cmaxslam_fbp.geometry.camera import Camera

_SPACING_PX, _MOST_NODES = 4, 60  # along a side: linear interpolation between them errs by 0.01 px, at VGA 0.03 px
_STEP = 1e-6  # of central differences of the projection, in radians and in units of a parameter's scale
_TINY = 1e-30


@dataclass(frozen=True)
class LensView:
    """What the nodes of a grid see through a lens.

    Attributes
    ----------
    rays : (n, m, 3) unit directions; straight ahead where nothing is seen
    jacobian : (n, m, 3, P) their derivatives by the parameters
    seen : (n, m) bool
    """

    rays: FloatArray
    jacobian: FloatArray
    seen: npt.NDArray[np.bool_]


class BearingGrid:
    """Nodes over the sensor; directions and gradients go between them and all pixels by linear interpolation."""

    def __init__(self, width: int, height: int) -> None:
        self._columns, self._by_column = _hat_functions(width)
        self._rows, self._by_row = _hat_functions(height)
        self.shape = len(self._rows), len(self._columns)
        self._steps_px = self._rows[1], self._columns[1]
        columns, rows = np.meshgrid(self._columns, self._rows)
        self.pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2)

    def view(self, parameters: LensParameters, values: FloatArray) -> LensView:
        """Return what the nodes see through the lens of some values (P,) of the parameters.

        A node stays at its pixel, `P(b(phi), phi) = x`, so `db/dphi = -(dP/db)^-1 dP/dphi` on the tangent plane of `b`.
        """
        camera = parameters.camera(values)
        plane = camera.undistort(self.pixels)
        seen = np.asarray(np.isfinite(plane).all(axis=1))
        rays = np.column_stack([np.where(seen[:, None], plane, 0.0), np.ones(len(plane))])
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        tangents = tangent_planes(rays)
        by_ray = np.stack([_difference(camera, rays, tangents[:, k]) for k in range(2)], axis=-1)
        by_value = np.empty((len(rays), 2, len(values)))
        for j, step in enumerate(parameters.scales * _STEP):
            ahead, behind = values.copy(), values.copy()
            ahead[j] += step
            behind[j] -= step
            there, back = parameters.camera(ahead).project(rays), parameters.camera(behind).project(rays)
            by_value[:, :, j] = (there - back) / (2 * step)
        jacobian = -np.einsum("nka,nkj->naj", tangents, np.linalg.solve(by_ray, by_value))
        jacobian[~seen] = 0.0
        return LensView(rays.reshape(*self.shape, 3), jacobian.reshape(*self.shape, 3, -1), seen.reshape(self.shape))

    def areas(self, view: LensView) -> tuple[FloatArray, FloatArray]:
        """Return the solid angle that a pixel covers around each node (n, m), and the derivatives of its log (n, m, P).

        The area between directions is `|db/dx x db/dy|`.
        """
        down, across = (np.gradient(view.rays, step, axis=axis) for axis, step in enumerate(self._steps_px))
        by_down, by_across = (np.gradient(view.jacobian, step, axis=axis) for axis, step in enumerate(self._steps_px))
        normal = np.cross(across, down)
        squares = np.maximum((normal**2).sum(axis=-1), _TINY)
        by_normal = np.cross(by_across, down[..., None], axis=2) + np.cross(across[..., None], by_down, axis=2)
        return np.sqrt(squares), np.einsum("nmi,nmij->nmj", normal, by_normal) / squares[..., None]

    def expand(self, nodes: FloatArray) -> FloatArray:
        """Return values (height, width, ...) of all pixels from those of the nodes (n, m, ...)."""
        n, m, *rest = nodes.shape
        along = np.einsum("wm,nmk->nwk", self._by_column, nodes.reshape(n, m, -1), optimize=True)
        return np.asarray((self._by_row @ along.reshape(n, -1)).reshape(len(self._by_row), len(self._by_column), *rest))

    def gather(self, pixels: FloatArray) -> FloatArray:
        """Return the transpose of `expand`: the gradient by the nodes (n, m, 3) from that by the pixels."""
        height, width, *rest = pixels.shape
        along = (self._by_row.T @ pixels.reshape(height, -1)).reshape(len(self._rows), width, -1)
        return np.einsum("wm,nwk->nmk", self._by_column, along, optimize=True).reshape(*self.shape, *rest)


def tangent_planes(rays: FloatArray) -> FloatArray:
    """Return two unit vectors (N, 2, 3) across each direction (N, 3), none of which points along y."""
    across = np.cross([0.0, 1.0, 0.0], rays)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.stack([across, np.cross(rays, across)], axis=1)


def _difference(camera: Camera, rays: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the derivative (N, 2) of the pixel where the ray moves in a direction (N, 3)."""
    return np.asarray(
        (camera.project(rays + _STEP * direction) - camera.project(rays - _STEP * direction)) / (2 * _STEP)
    )


def _hat_functions(length: int) -> tuple[FloatArray, FloatArray]:
    """Return evenly spaced places (n,) over `length` pixels, and the weights (length, n) of linear interpolation."""
    places = np.linspace(0, length - 1, min(max(2, -(-(length - 1) // _SPACING_PX) + 1), _MOST_NODES))
    weights = np.maximum(0.0, 1 - np.abs(np.arange(length)[:, None] - places) / (places[1] - places[0]))
    return places, weights
