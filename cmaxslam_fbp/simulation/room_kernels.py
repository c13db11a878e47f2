"""Compiled ray casting in a room of textured rectangles."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from cmaxslam_fbp.compiling import compiled

_F0, _F1 = np.float32(0), np.float32(1)
_HARDLY = np.float32(1e-6)  # inverse distance: what is farther than a thousand kilometres is not hit


@compiled
def sample_room(texels, size, bearings, first, count, matrices, extents, levels):
    """Fill `levels[:count, 1:]` with what `count` pixels see over the K renderings.

    `matrices` (F, 9, K) take a bearing to `(x, y, z)` of each rectangle: the inverse distance `z` of its plane along
    the ray, and the texel `(x, y) / z`, counted from the texture's middle. `extents` (F, 5) are the rectangle's first
    and last column and row there, and the width over which its border fades. The rectangles come from back to front:
    a later one covers the earlier ones.
    """
    steps = matrices.shape[2]
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    for n in range(count):
        bx, by, bz = bearings[first + n, 0], bearings[first + n, 1], bearings[first + n, 2]
        for k in range(1, steps + 1):
            levels[n, k] = _F0
        for f in range(len(matrices)):
            left, right, top, bottom, soft = extents[f]
            base = f * size * size
            for k in range(steps):
                z = matrices[f, 6, k] * bx + matrices[f, 7, k] * by + matrices[f, 8, k] * bz
                if z <= _HARDLY:
                    continue
                distance = _F1 / z
                u = distance * (matrices[f, 0, k] * bx + matrices[f, 1, k] * by + matrices[f, 2, k] * bz)
                if u < left or u > right:
                    continue
                v = distance * (matrices[f, 3, k] * bx + matrices[f, 4, k] * by + matrices[f, 5, k] * bz)
                if v < top or v > bottom:
                    continue
                column, row = min(max(u + centre, _F0), limit), min(max(v + centre, _F0), limit)
                i, j = int(column), int(row)
                along, down = column - np.float32(i), row - np.float32(j)
                a = base + j * size + i
                c = a + size
                upper = texels[a] + along * (texels[a + 1] - texels[a])
                lower = texels[c] + along * (texels[c + 1] - texels[c])
                level = upper + down * (lower - upper)
                if soft > _F0:
                    border = min(min(u - left, right - u), min(v - top, bottom - v))
                    cover = min(border / soft, _F1)
                    level = levels[n, k + 1] + cover * (level - levels[n, k + 1])
                levels[n, k + 1] = level
