"""When to render: blocks of renderings so dense that nothing moves far between two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera

# A pixel keeps its cube face for a block, chosen at the block's middle; the faces overlap by more than half of this.
MAX_BLOCK_RAD = 0.2

_TICK_US = 1000
_MAX_BLOCK_TICKS = 64
_MAX_STEPS = 64
_LANES = 16  # steps come in multiples of it: the kernels compute 16 numbers at once
_SAFETY = 1.02  # speeds are looked up once per tick


@dataclass(frozen=True)
class Block:
    """A stretch of time with `steps` equal steps, each of which ends with a rendering."""

    start_us: int
    length_us: int
    steps: int

    @property
    def times_us(self) -> FloatArray:
        """Ends of the steps (steps + 1,) in microseconds since the block's start; the first is 0."""
        return np.linspace(0.0, self.length_us, self.steps + 1)


def pixels_per_radian(camera: Camera) -> float:
    """Return the largest image motion in pixels that a turn of one radian causes anywhere on the sensor."""
    return _largest_motion_px(camera, camera.bearings())


def pixels_per_tangent(camera: Camera) -> float:
    """Return the largest image motion in pixels that one unit of the normalised plane is anywhere on the sensor."""
    return _largest_motion_px(camera, camera.undistorted_pixels())


def _largest_motion_px(camera: Camera, seen: FloatArray) -> float:
    """Motion in pixels per unit of what the pixels see (height, width, D), where it is largest."""
    if not camera.seen_pixels().all():
        raise SimulationError("the simulator needs a lens that sees on every pixel: give a longer focal length")
    if min(seen.shape[:2]) < 2:
        return max(camera.fx, camera.fy)
    right = np.diff(seen, axis=1)[1:]
    down = np.diff(seen, axis=0)[:, 1:]
    # The smallest singular value of (right, down) is the smallest change that moves the image by one pixel.
    a, b, c = (np.einsum("ijk,ijk->ij", *pair) for pair in ((right, right), (right, down), (down, down)))
    smallest = (a + c) / 2 - np.sqrt(((a - c) / 2) ** 2 + b**2)
    return float(1 / np.sqrt(smallest.min()))


def schedule_blocks(duration_us: int, speeds_rad_s: FloatArray, max_step_rad: float) -> Iterator[Block]:
    """Cut `duration_us` into blocks whose steps move the image by at most `max_step_rad`.

    `speeds_rad_s` (T + 1,) are the image's speeds at every millisecond, from 0 to at least the end, as angles or as
    tangents. The blocks depend on these alone, so that a recording is the same however it is read.
    """
    turns = np.maximum(speeds_rad_s[:-1], speeds_rad_s[1:]) * (_SAFETY * 1e-6)  # rad per microsecond, per tick
    if turns.max(initial=0.0) * _TICK_US > MAX_BLOCK_RAD:
        raise SimulationError(
            f"the image moves at {np.degrees(turns.max() * 1e6):.0f} deg/s, too fast to follow; lower the peak speed"
        )
    largest = min(MAX_BLOCK_RAD, _MAX_STEPS * max_step_rad)
    ticks = -(-duration_us // _TICK_US)
    first = 0
    while first < ticks:
        fastest, last = turns[first], first + 1
        while last < ticks and last - first < _MAX_BLOCK_TICKS:
            faster = max(fastest, turns[last])
            if faster * (last + 1 - first) * _TICK_US > largest:
                break
            fastest, last = faster, last + 1
        start_us, end_us = first * _TICK_US, min(last * _TICK_US, duration_us)
        steps = max(1, int(np.ceil(fastest * (end_us - start_us) / max_step_rad)))
        if steps > _LANES // 4:
            steps = -(-steps // _LANES) * _LANES
        yield Block(start_us, end_us - start_us, steps)
        first = last
