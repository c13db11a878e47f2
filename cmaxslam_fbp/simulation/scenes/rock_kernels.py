"""Compiled noise of space: cells (stones with cracks between them) and smooth fractal noise."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled

_A, _B, _C = np.uint32(0x8DA6B343), np.uint32(0xD8163841), np.uint32(0xCB1AB31F)
_M1, _M2 = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
_S16, _S15, _S10 = np.uint32(16), np.uint32(15), np.uint32(10)
_LOW = np.uint32(0x3FF)
_UNIT = np.float32(1.0 / 4294967296.0)
_TENTH = np.float32(1.0 / 1024.0)


@compiled
def hash_cell(i, j, k, seed):
    """Return 32 random bits of a lattice cell."""
    h = np.uint32(seed ^ np.uint32(np.uint32(i) * _A) ^ np.uint32(np.uint32(j) * _B) ^ np.uint32(np.uint32(k) * _C))
    h = np.uint32(np.uint32(h ^ np.uint32(h >> _S16)) * _M1)
    h = np.uint32(np.uint32(h ^ np.uint32(h >> _S15)) * _M2)
    return np.uint32(h ^ np.uint32(h >> _S16))


@compiled
def value_noise(x, y, z, seed):
    """Return smooth noise in -1 to 1: random values at lattice corners, blended by `3 t^2 - 2 t^3`."""
    fx, fy, fz = math.floor(x), math.floor(y), math.floor(z)
    i, j, k = int(fx), int(fy), int(fz)
    u, v, w = np.float32(x - fx), np.float32(y - fy), np.float32(z - fz)
    two, three = np.float32(2), np.float32(3)
    u, v, w = u * u * (three - two * u), v * v * (three - two * v), w * w * (three - two * w)
    total = np.float32(0)
    one = np.float32(1)
    for a in range(2):
        wa = u if a == 1 else one - u
        for b in range(2):
            wb = wa * (v if b == 1 else one - v)
            for c in range(2):
                total += wb * (w if c == 1 else one - w) * np.float32(hash_cell(i + a, j + b, k + c, seed)) * _UNIT
    return two * total - one


@compiled
def nearest_cells(x, y, z, seed):
    """Return the distances to the nearest two of one random point per lattice cell, and the nearest one's hash."""
    fx, fy, fz = math.floor(x), math.floor(y), math.floor(z)
    i, j, k = int(fx), int(fy), int(fz)
    first, second = np.float32(9), np.float32(9)
    nearest = np.uint32(0)
    for a in range(i - 1, i + 2):
        for b in range(j - 1, j + 2):
            for c in range(k - 1, k + 2):
                h = hash_cell(a, b, c, seed)
                dx = np.float32(a) + np.float32(h & _LOW) * _TENTH - x
                dy = np.float32(b) + np.float32((h >> _S10) & _LOW) * _TENTH - y
                dz = np.float32(c) + np.float32(h >> np.uint32(20)) * _UNIT * np.float32(1048576.0) - z
                d = dx * dx + dy * dy + dz * dz
                if d < first:
                    second = first
                    first, nearest = d, h
                elif d < second:
                    second = d
    return math.sqrt(first), math.sqrt(second), nearest


@compiled
def rock_level(x, y, z, seeds):
    """Return the log intensity of rocks at a point of space: large stones, gravel, and grain."""
    # Bend the space a little, so that the stones are not polyhedra.
    s = np.float32(9)
    bend = np.float32(0.035)
    px = x + bend * value_noise(s * x, s * y, s * z, seeds[0])
    py = y + bend * value_noise(s * x + s, s * y, s * z, seeds[0])
    pz = z + bend * value_noise(s * x, s * y + s, s * z, seeds[0])
    s = np.float32(11)
    near, far, stone = nearest_cells(s * px, s * py, s * pz, seeds[1])
    crack = min(max((far - near) * np.float32(6), np.float32(0)), np.float32(1))
    level = np.float32(1.0) * np.float32(stone >> np.uint32(24)) / np.float32(256)
    level += np.float32(1.1) * (crack - np.float32(1))
    s = np.float32(36)
    near, far, stone = nearest_cells(s * px, s * py, s * pz, seeds[2])
    crack = min(max((far - near) * np.float32(4), np.float32(0)), np.float32(1))
    level += np.float32(0.7) * np.float32(stone >> np.uint32(24)) / np.float32(256)
    level += np.float32(0.5) * (crack - np.float32(1))
    s, weight = np.float32(6), np.float32(0.45)
    for octave in range(5):
        level += weight * value_noise(s * x, s * y, s * z, seeds[3] + np.uint32(octave))
        s *= np.float32(2.3)
        weight *= np.float32(0.8)
    return np.float32(0.5) * level - np.float32(1.0)


@compiled
def rock_levels(levels, seeds):
    """Fill `levels` (height, width) with the rocks on the unit sphere."""
    height, width = levels.shape
    focal = width / (2 * math.pi)
    for row in range(height):
        theta = (row - height / 2) / focal
        for column in range(width):
            phi = (column - width / 2) / focal
            x = np.float32(math.cos(theta) * math.sin(phi))
            y = np.float32(math.sin(theta))
            z = np.float32(math.cos(theta) * math.cos(phi))
            levels[row, column] = rock_level(x, y, z, seeds)


@compiled
def flat_rock_levels(levels, focal, seeds):
    """Fill `levels` (size, size) with the rocks on a plane, about its middle, `focal` pixels per unit."""
    size = len(levels)
    z = np.float32(0.37)  # between the cells' lattice planes
    for row in range(size):
        y = np.float32((row - (size - 1) / 2) / focal)
        for column in range(size):
            x = np.float32((column - (size - 1) / 2) / focal)
            levels[row, column] = rock_level(x, y, z, seeds)
