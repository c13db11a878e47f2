"""Compiled resampling of a panorama onto a cube face."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled


@compiled
def keys_weights(t, weights):
    """Fill the four weights of Keys' cubic interpolation (a = -1/2) at the fraction `t` between two samples."""
    weights[0] = ((-0.5 * t + 1.0) * t - 0.5) * t
    weights[1] = (1.5 * t - 2.5) * t * t + 1.0
    weights[2] = ((-1.5 * t + 2.0) * t + 0.5) * t
    weights[3] = (0.5 * t - 0.5) * t * t


@compiled
def sample_face(padded, margin, width, axes, focal, face):
    """Fill `face` (size, size) with bicubic samples of a panorama that continues by `margin` on all sides.

    `axes` (3, 3) are the face's right, down and forward axes; texel (row, column) looks along
    `right (column - c) / focal + down (row - c) / focal + forward`, with `c = (size - 1) / 2`.
    """
    size = len(face)
    centre = (size - 1) / 2
    scale = width / (2 * math.pi)
    along, across = np.empty(4), np.empty(4)
    for row in range(size):
        v = (row - centre) / focal
        for column in range(size):
            u = (column - centre) / focal
            x = u * axes[0, 0] + v * axes[1, 0] + axes[2, 0]
            y = u * axes[0, 1] + v * axes[1, 1] + axes[2, 1]
            z = u * axes[0, 2] + v * axes[1, 2] + axes[2, 2]
            px = margin + width / 2 + scale * math.atan2(x, z)
            py = margin + width / 4 + scale * math.atan2(y, math.sqrt(x * x + z * z))
            i, j = int(px), int(py)
            keys_weights(px - i, across)
            keys_weights(py - j, along)
            total = 0.0
            for b in range(4):
                line = 0.0
                for a in range(4):
                    line += across[a] * padded[j + b - 1, i + a - 1]
                total += along[b] * line
            face[row, column] = total
