"""The scene `shapes`: dark simple figures on a white wall, few and strong edges."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.scenes.patches import Patch, flat_patch, random_direction, tangent_axes, tangent_patch

_WALL = 0.85
_COUNT = 75
_RADIUS_DEG = (4.0, 7.5)
_GAP_DEG = 2.0


def _regular(corners: int, inner: float = 1.0) -> FloatArray:
    """Corners (M, 2) of a regular polygon of radius 1, or of a star with the given inner radius."""
    radii = np.tile([1.0, inner], corners) if inner < 1 else np.ones(corners)
    angles = 2 * np.pi * np.arange(len(radii)) / len(radii)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)


# None is the circle; the others are polygons within the unit circle.
_FIGURES: tuple[FloatArray | None, ...] = (
    None,
    _regular(3),
    _regular(4),
    _regular(5),
    _regular(6),
    _regular(5, 0.42),
    np.array([[-0.92, -0.38], [0.92, -0.38], [0.92, 0.38], [-0.92, 0.38]]),
    np.array([[-0.9, -0.4], [0.5, -0.4], [0.9, 0.4], [-0.5, 0.4]]),
    0.95 * np.array([[-1, -0.3], [0.1, -0.3], [0.1, -0.7], [1, 0], [0.1, 0.7], [0.1, 0.3], [-1, 0.3]]),
)


def polygon_distance(u: FloatArray, v: FloatArray, corners: FloatArray) -> FloatArray:
    """Return the signed distance, negative inside, of points to a polygon with corners (M, 2)."""
    nearest = np.full(u.shape, np.inf)
    inside = np.zeros(u.shape, bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        ex, ey = bx - ax, by - ay
        along = np.clip(((u - ax) * ex + (v - ay) * ey) / (ex * ex + ey * ey), 0, 1)
        nearest = np.minimum(nearest, (u - ax - along * ex) ** 2 + (v - ay - along * ey) ** 2)
        if ey != 0:
            inside ^= ((ay > v) != (by > v)) & (u < ax + (v - ay) * ex / ey)
    return np.where(inside, -1.0, 1.0) * np.sqrt(nearest)


def _paint_figure(
    image: FloatArray, patch: Patch, figure: FloatArray | None, size: float, shade: float, soft: float
) -> None:
    """Paint a figure of radius `size` around the patch's centre."""
    if figure is None:
        distance = np.hypot(patch.u, patch.v) - 0.85 * size
    else:
        distance = polygon_distance(patch.u, patch.v, size * figure)
    cover = np.clip(0.5 - distance / (2 * soft), 0, 1)
    image[patch.rows, patch.columns] += cover * (shade - image[patch.rows, patch.columns])


def draw_shapes(width: int, seed: int) -> SingleArray:
    """Return the panorama (width / 2, width): figures of 8 to 15 degrees that do not touch, all around."""
    rng = np.random.default_rng([seed, 0x53686170])
    panorama = np.full((width // 2, width), _WALL)
    soft = np.pi / width  # half a pixel: the edge's coverage
    centres: list[FloatArray] = []
    radii: list[float] = []
    for _ in range(40 * _COUNT):
        if len(centres) == _COUNT:
            break
        forward, radius = random_direction(rng), np.radians(rng.uniform(*_RADIUS_DEG))
        gaps = [np.arccos(np.clip(forward @ c, -1, 1)) - r for c, r in zip(centres, radii, strict=True)]
        if gaps and min(gaps) < radius + np.radians(_GAP_DEG):
            continue
        centres.append(forward)
        radii.append(radius)
        figure = _FIGURES[rng.integers(len(_FIGURES))]
        shade = rng.uniform(0.12, 0.35)
        patch = tangent_patch(width, tangent_axes(forward, rng.uniform(0, 2 * np.pi)), radius + 4 * soft)
        _paint_figure(panorama, patch, figure, np.tan(radius), shade, soft)
    return panorama.astype(np.float32)


def draw_flat_shapes(size: int, focal: float, seed: int) -> SingleArray:
    """Return a wall (size, size) of `focal` pixels per unit: the same figures, as dense and as large."""
    rng = np.random.default_rng([seed, 0x53686170, 1])
    wall = np.full((size, size), _WALL)
    half, soft = size / 2 / focal, 0.5 / focal
    count = round(_COUNT / (4 * np.pi) * (2 * half) ** 2)
    centres, radii = np.empty((0, 2)), np.empty(0)
    for _ in range(40 * count):
        if len(centres) == count:
            break
        centre, radius = rng.uniform(-half, half, 2), np.tan(np.radians(rng.uniform(*_RADIUS_DEG)))
        if (np.hypot(*(centres - centre).T) - radii < radius + np.radians(_GAP_DEG)).any():
            continue
        centres, radii = np.vstack([centres, centre]), np.append(radii, radius)
        patch = flat_patch(size, focal, centre, rng.uniform(0, 2 * np.pi), radius + 4 * soft)
        _paint_figure(wall, patch, _FIGURES[rng.integers(len(_FIGURES))], radius, rng.uniform(0.12, 0.35), soft)
    return wall.astype(np.float32)
