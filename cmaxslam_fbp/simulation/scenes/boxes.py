"""The scene `boxes`: printed boxes piled up all around, with texture on every side."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.scenes.patches import Patch, flat_patch, random_direction, tangent_axes, tangent_patch

_FLOOR = 0.35
_COUNT = 450
_HALF_SIZE_DEG = (4.0, 11.0)


def _print(s: FloatArray, t: FloatArray, aspect: float, rng: np.random.Generator) -> FloatArray:
    """Return the print on a side at `s` and `t` in 0 to 1: reflectance relative to the bare side."""
    kind = rng.integers(6)
    ink = rng.uniform(0.4, 0.8)
    if kind == 0:  # bar code
        bars = rng.random(int(rng.integers(8, 22))) < 0.5
        dark = bars[np.clip((s * len(bars)).astype(int), 0, len(bars) - 1)] & (np.abs(t - 0.5) < 0.35)
    elif kind == 1:  # checks
        n = int(rng.integers(3, 8))
        dark = (np.floor(s * n) + np.floor(t * max(1, round(n / aspect)))) % 2 == 1
    elif kind == 2:  # lines of text
        lines, letters = int(rng.integers(4, 9)), int(rng.integers(14, 30))
        text = rng.random((lines, letters)) < 0.62
        row = np.clip((t * lines).astype(int), 0, lines - 1)
        column = np.clip((s * letters).astype(int), 0, letters - 1)
        dark = text[row, column] & (np.abs(t * lines - row - 0.5) < 0.3) & (np.abs(s - 0.5) < 0.42)
    elif kind == 3:  # dots
        n = int(rng.integers(3, 7))
        m = max(1, round(n / aspect))
        dark = (np.mod(s * n, 1) - 0.5) ** 2 + (np.mod(t * m, 1) - 0.5) ** 2 < rng.uniform(0.06, 0.14)
    elif kind == 4:  # a label with a frame
        x, y = np.abs(s - rng.uniform(0.35, 0.65)), np.abs(t - rng.uniform(0.35, 0.65))
        outer, inner = (x < 0.28) & (y < 0.28), (x < 0.22) & (y < 0.22)
        dark = (outer & ~inner) | (inner & (np.mod(t * 22, 2) < 1))
    else:  # slanted stripes
        dark = np.mod((s + rng.uniform(-1, 1) * t) * rng.integers(4, 10), 1) < 0.5
    return np.where(dark, ink, 1.0)


def _paint_side(
    panorama: FloatArray, patch: Patch, corner: FloatArray, right: FloatArray, down: FloatArray,
    shade: float, soft: float, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Paint the parallelogram `corner + s right + t down` of the patch's plane."""
    area = right[0] * down[1] - right[1] * down[0]
    x, y = patch.u - corner[0], patch.v - corner[1]
    s, t = (x * down[1] - y * down[0]) / area, (right[0] * y - right[1] * x) / area
    length_s, length_t = abs(area) / np.hypot(*down), abs(area) / np.hypot(*right)
    inside = np.minimum(np.minimum(s, 1 - s) * length_s, np.minimum(t, 1 - t) * length_t)
    seen = np.nonzero(inside > -soft)
    s, t, inside = s[seen], t[seen], inside[seen]
    colour = shade * _print(s, t, length_s / length_t, rng)
    colour = np.where(inside < 0.004, 0.6 * shade, colour)  # the edge of the cardboard
    place = patch.rows[seen[0], 0], patch.columns[0, seen[1]]
    panorama[place] += np.clip(0.5 + inside / (2 * soft), 0, 1) * (colour - panorama[place])


def _paint_box(
    image: FloatArray, patch: Patch, half: FloatArray, depth: FloatArray, soft: float, rng: np.random.Generator
) -> None:
    """Paint a box of half sizes `half` (2,) whose three visible sides reach `depth` (2,) to the back."""
    shade = rng.uniform(0.25, 0.8)
    across, along = np.array([2 * half[0], 0.0]), np.array([0.0, 2 * half[1]])
    corner = -half
    side = corner + (across if depth[0] > 0 else 0)
    lid = corner + (along if depth[1] > 0 else 0)
    _paint_side(image, patch, side, depth, along, 0.55 * shade, soft, rng)
    _paint_side(image, patch, lid, across, depth, 0.8 * shade, soft, rng)
    _paint_side(image, patch, corner, across, along, shade, soft, rng)


def draw_boxes(width: int, seed: int) -> SingleArray:
    """Return the panorama (width / 2, width): boxes of 8 to 22 degrees, each with three visible sides."""
    rng = np.random.default_rng([seed, 0x426F7865])
    panorama = np.full((width // 2, width), _FLOOR)
    soft = np.pi / width
    for _ in range(_COUNT):
        half = np.tan(np.radians(rng.uniform(*_HALF_SIZE_DEG, 2)))
        depth = rng.uniform(-0.6, 0.6, 2) * half.min()
        radius = np.arctan(np.hypot(*(half + np.abs(depth)))) + 4 * soft
        patch = tangent_patch(width, tangent_axes(random_direction(rng), rng.normal(0, 0.25)), radius)
        _paint_box(panorama, patch, half, depth, soft, rng)
    return panorama.astype(np.float32)


def draw_flat_boxes(size: int, focal: float, seed: int) -> SingleArray:
    """Return a wall (size, size) of `focal` pixels per unit: a picture of such boxes, as dense and as large."""
    rng = np.random.default_rng([seed, 0x426F7865, 1])
    wall = np.full((size, size), _FLOOR)
    soft = 0.5 / focal
    half_wall = size / 2 / focal + np.tan(np.radians(_HALF_SIZE_DEG[1]))  # some reach in from outside
    for _ in range(round(_COUNT / (4 * np.pi) * (2 * half_wall) ** 2)):
        half = np.tan(np.radians(rng.uniform(*_HALF_SIZE_DEG, 2)))
        depth = rng.uniform(-0.6, 0.6, 2) * half.min()
        radius = np.hypot(*(half + np.abs(depth))) + 4 * soft
        centre = rng.uniform(-half_wall, half_wall, 2)
        _paint_box(wall, flat_patch(size, focal, centre, rng.normal(0, 0.25), radius), half, depth, soft, rng)
    return wall.astype(np.float32)
