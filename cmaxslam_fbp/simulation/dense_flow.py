"""The exact optical flow of a simulated recording: where what a pixel sees is seen later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.foreground import Foreground
from cmaxslam_fbp.simulation.recording import SimulatedRecording


@dataclass(frozen=True, eq=False)
class DenseFlow:
    """Displacements of all pixels between two times.

    Attributes
    ----------
    flow_px : (height, width, 2)
        To the right and down; zero where nothing is known.
    is_valid : (height, width)
        Where the lens sees, and the later direction lies before the camera. What moves out of the image, or behind
        another object, has a flow all the same.
    is_foreground : (height, width)
        Where the moving object is seen at the first time.
    """

    flow_px: FloatArray
    is_valid: npt.NDArray[np.bool_]
    is_foreground: npt.NDArray[np.bool_]


def dense_flow(recording: SimulatedRecording, start_s: float, end_s: float) -> DenseFlow:
    """Return `project(R_1^T (p_0 + s R_0 b - p_1)) - x` of the pixels `x` with bearings `b`, from `start_s` to `end_s`.

    `s` is the distance of what the pixel sees; for what is infinitely far only the rotations count. On the moving
    object, whose axes are `R_wo`, it is `project(R_1^T R_wo_1 R_wo_0^T R_0 b) - x`.
    """
    times = np.array([start_s, end_s], np.float64)
    if not (times >= 0).all() or not (times <= recording.duration_s).all():
        raise SimulationError(
            f"there is no flow from {start_s} s to {end_s} s of a recording of {recording.duration_s} s"
        )
    camera = recording.camera
    bearings = camera.bearings().reshape(-1, 3)
    first, last = recording.motion.rotations(times)
    rays = bearings @ first.T
    distances = recording.scene_distances(rays, start_s)
    if distances is None or recording.translation is None:
        later = rays @ last
    else:
        before, after = recording.translation.positions(times)
        later = (before + distances[:, None] * rays - after) @ last
    is_foreground = np.zeros(len(rays), bool)
    if recording.foreground is not None:
        turned_first, turned_last = recording.foreground.motion.rotations(times)
        own = rays @ turned_first
        is_foreground = is_opaque(recording.foreground, own)
        later[is_foreground] = own[is_foreground] @ turned_last.T @ last
    is_valid = camera.seen_pixels().ravel() & (later[:, 2] > 0)
    rows, columns = np.mgrid[: camera.height, : camera.width]
    flow = np.zeros((len(rays), 2))
    flow[is_valid] = camera.project(later[is_valid]) - np.stack([columns, rows], -1).reshape(-1, 2)[is_valid]
    is_valid &= np.isfinite(flow).all(axis=1)
    flow[~is_valid] = 0
    shape = camera.height, camera.width
    return DenseFlow(flow.reshape(*shape, 2), is_valid.reshape(shape), is_foreground.reshape(shape))


def is_opaque(foreground: Foreground, directions: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which directions (N, 3) of the object's own axes meet more of it than they pass by."""
    size = len(foreground.opacity)
    ahead = directions[:, 2] > np.cos(min(foreground.radius_rad, 1.5))
    depth = np.where(ahead, directions[:, 2], 1.0)
    x, y = (np.rint(foreground.focal * directions[:, axis] / depth + (size - 1) / 2).astype(int) for axis in range(2))
    inside = ahead & (x >= 0) & (x < size) & (y >= 0) & (y < size)
    hit = np.zeros(len(directions), bool)
    hit[inside] = foreground.opacity[y[inside], x[inside]] > 0.5
    return hit
