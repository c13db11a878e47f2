"""Patches of a scene around a figure, with plane coordinates: on a panorama those of the tangent plane, or flat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

_BEHIND = 1e3  # coordinate given to directions that do not meet the plane


@dataclass(frozen=True, eq=False)
class Patch:
    """Pixels `panorama[rows, columns]` and their plane coordinates `u` (right) and `v` (down), as tangents."""

    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    u: FloatArray
    v: FloatArray


def random_direction(rng: np.random.Generator) -> FloatArray:
    """Return a direction (3,) drawn uniformly from the sphere."""
    vector = rng.standard_normal(3)
    return vector / np.linalg.norm(vector)


def tangent_axes(forward: FloatArray, roll_rad: float) -> FloatArray:
    """Return the right, down and forward axes (3, 3) of the plane that touches the sphere at `forward`."""
    helper = np.array([0.0, 1.0, 0.0]) if abs(forward[1]) < 0.95 else np.array([0.0, 0.0, 1.0])
    right = np.cross(helper, forward)
    right /= np.linalg.norm(right)
    down = np.cross(forward, right)
    c, s = np.cos(roll_rad), np.sin(roll_rad)
    return np.stack([c * right + s * down, c * down - s * right, forward])


def tangent_patch(width: int, axes: FloatArray, radius_rad: float) -> Patch:
    """Return the patch of a panorama of the given width that holds the cap of `radius_rad` around `axes[2]`."""
    height, focal = width // 2, width / (2 * np.pi)
    latitude = np.arcsin(np.clip(axes[2, 1], -1, 1))
    longitude = np.arctan2(axes[2, 0], axes[2, 2])
    top = int(np.floor(height / 2 + focal * (latitude - radius_rad)))
    bottom = int(np.ceil(height / 2 + focal * (latitude + radius_rad)))
    rows = np.arange(max(top, 0), min(bottom + 1, height))
    if abs(latitude) + radius_rad >= np.pi / 2 - 1e-3:
        columns = np.arange(width)
    else:
        reach = focal * np.arcsin(min(np.sin(radius_rad) / np.cos(latitude), 1.0))
        middle = width / 2 + focal * longitude
        columns = np.arange(int(np.floor(middle - reach)), int(np.ceil(middle + reach)) + 1)[:width]
    phi, theta = (columns - width / 2) / focal, (rows - height / 2) / focal
    cos_theta = np.cos(theta)[:, None]
    directions = np.stack(
        [
            cos_theta * np.sin(phi),
            np.broadcast_to(np.sin(theta)[:, None], (len(rows), len(columns))),
            cos_theta * np.cos(phi),
        ]
    )
    x, y, z = np.tensordot(axes, directions, axes=1)
    ahead = z > 0.05
    z = np.where(ahead, z, 1.0)
    u, v = np.where(ahead, x / z, _BEHIND), np.where(ahead, y / z, _BEHIND)
    return Patch(rows[:, None], np.mod(columns, width)[None, :], u, v)


def flat_patch(size: int, focal: float, centre: FloatArray, roll_rad: float, radius: float) -> Patch:
    """Return the patch of a square image that holds the disc of `radius` around `centre` (2,): right and down.

    Lengths count from the image's middle, in units of `focal` pixels; `size` is in pixels.
    """
    middle = (size - 1) / 2
    first = np.maximum(np.floor(middle + focal * (centre - radius)).astype(int), 0)
    last = np.minimum(np.ceil(middle + focal * (centre + radius)).astype(int), size - 1)
    x, y = (np.arange(first[axis], last[axis] + 1) for axis in range(2))
    right, down = ((x - middle) / focal - centre[0])[None, :], ((y - middle) / focal - centre[1])[:, None]
    c, s = np.cos(roll_rad), np.sin(roll_rad)
    return Patch(y[:, None], x[None, :], c * right + s * down, c * down - s * right)
