"""The search for a window in the whole map: coarse to fine over SO(3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend import panorama_kernels as kernels
from cmaxslam_fbp.backend.panorama import PanoramaMap
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory.spline import RotationSpline

_BLOCKS_ACROSS = 24  # of the coarsest level across the field of view
_LEVELS = 3  # each with blocks half as wide
_STEP_BLOCKS = 1.2  # of the coarsest rotations: neighbouring ones move the image's middle and its border by so much
_KEPT = (32, 12, 3)  # rotations that go on from each level
_APART_STEPS = 1.5  # rotations nearer than this are one; behind the last level, those of the coarsest one
_MIN_OVERLAP = 0.5  # of the window's events on the known map
_BLUR = (0.25, 0.5, 0.25)  # of the map on the coarsest level
_LOOKS = 5  # times at which the field of view during the window is looked up


@dataclass(frozen=True)
class Place:
    """A rotation `R_wc` (3, 3) of the camera in the middle of a window, and the correlation with the map there."""

    R_wc: FloatArray
    score: float


@dataclass(frozen=True)
class Cells:
    """What a window has seen, in blocks of the panorama of a camera at rest.

    `directions` (3, C) float32; `values` (C,) float32 `sqrt(events per look)`; `events` (C,) float32.
    """

    directions: SingleArray
    values: SingleArray
    events: SingleArray


class MapSearch:
    """Finds where in a map a window may have been seen.

    The window's events are warped to its middle by the motion that is predicted for it, which makes an image on the
    sphere in the camera's frame; `sqrt(events)` there is correlated with `sqrt(events per visit)` of the map. On the
    coarsest level all rotations whose optical axis points to the known map are tried, on each finer one the
    neighbours of the best.

    Parameters
    ----------
    size : (width, height) of the panorama
    planes : (4, 3) inward normals of the planes around the field of view
    """

    def __init__(self, size: tuple[int, int], planes: FloatArray) -> None:
        self._projection, self._planes = Equirectangular(*size), planes
        # The planes left and right of the field of view enclose its angle; so do those above and below.
        angles = [np.pi - np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in (planes[:2], planes[2:])]
        across_px = max(angles) * self._projection.focal_px
        coarsest = 2 ** max(round(np.log2(max(across_px / _BLOCKS_ACROSS, 1.0))), 0)
        self._factors = [coarsest >> level for level in range(_LEVELS) if coarsest >> level]
        self._radius = float(np.sin(min(np.hypot(*angles) / 2, np.pi / 2)))

    def places(self, warp: PanoramicWarp, motion: RotationSpline, panorama: PanoramaMap) -> list[Place]:
        """Return where a window with these events and this predicted motion may be, the best first, none twice."""
        middle_ns = int(warp.edges_ns[0] + warp.edges_ns[-1]) // 2
        to_middle = motion.rotations_at(middle_ns).T
        relative = (to_middle @ motion.rotations_at(warp.edges_ns)).reshape(-1, 9).astype(np.float32)
        points = warp.points(relative)
        looks_ns = warp.edges_ns[np.linspace(0, len(warp.edges_ns) - 1, _LOOKS).astype(np.intp)]
        looks = self._looks(to_middle @ motion.rotations_at(looks_ns))
        places: list[Place] = []
        for factor, kept in zip(self._factors, _KEPT[-len(self._factors) :], strict=True):
            step = self._step(factor)
            known = panorama.blocks(factor)
            if factor == self._factors[0]:
                known = _blurred(known)  # so that the steps between rotations miss nothing
                rotations = self._all_rotations(known, factor, step)
            else:
                rotations = self._neighbours(places, step)
                looks = np.repeat(np.repeat(looks, 2, axis=0), 2, axis=1)
            scores = self.scores(rotations, self._cells(points, looks, factor), known, factor)
            is_last = factor == self._factors[-1]
            apart = _APART_STEPS * self._step(self._factors[0] if is_last else factor)
            places = _best(rotations, scores, kept, apart)
            if not places:
                break
        return places

    def scores(self, rotations: FloatArray, cells: Cells, known: SingleArray, factor: int) -> FloatArray:
        """Return the correlation (M,) with the blocks of a map for each of the rotations (M, 3, 3); see the kernel."""
        scores = np.empty(len(rotations))
        projection = self._projection
        size = np.array([projection.width, projection.height, projection.focal_px], np.float32)
        flat = np.ascontiguousarray(rotations.reshape(-1, 9), np.float32)
        kernels.score_rotations(
            flat, cells.directions, cells.values, cells.events, known, np.float32(factor), tuple(size),
            _MIN_OVERLAP, scores,
        )  # fmt: skip
        return scores

    def _step(self, factor: int) -> float:
        """Return the angle between neighbouring rotations of a level."""
        return _STEP_BLOCKS * factor / self._projection.focal_px

    def _block_directions(self, factor: int) -> FloatArray:
        """Return the directions (rows, columns, 3) of the middles of all blocks."""
        width, height = self._projection.width, self._projection.height
        columns, rows = np.meshgrid(np.arange(-(-width // factor)), np.arange(-(-height // factor)))
        return self._projection.unproject(factor * np.stack([columns, rows], axis=-1) + (factor - 1) / 2)

    def _looks(self, rotations: FloatArray) -> npt.NDArray[np.int32]:
        """Return how many of the orientations (M, 3, 3) have each block of the coarsest level in the field of view."""
        directions = self._block_directions(self._factors[0])
        seen = [((directions @ R) @ self._planes.T > 0).all(axis=-1) for R in rotations]
        return np.asarray(np.sum(seen, axis=0), np.int32)

    def _cells(self, points: SingleArray, looks: npt.NDArray[np.int32], factor: int) -> Cells:
        """Return the cells that were seen, with the events at points (N, 2), row and column."""
        directions = self._block_directions(factor)
        rows, columns = directions.shape[:2]
        looks = looks[:rows, :columns]
        row, column = ((points + 0.5) / factor).astype(np.intp).T
        place = np.clip(row, 0, rows - 1) * columns + column % columns
        counts = np.bincount(place, minlength=rows * columns).reshape(rows, columns)
        seen = looks > 0
        return Cells(
            np.ascontiguousarray(directions[seen].T, np.float32),
            np.sqrt(counts[seen] / looks[seen]).astype(np.float32),
            counts[seen].astype(np.float32),
        )

    def _all_rotations(self, known: SingleArray, factor: int, step: float) -> FloatArray:
        """Return rotations (M, 3, 3), a step apart, whose optical axis points to a known block."""
        width, height = self._projection.width, self._projection.height
        latitudes = np.arange(-np.pi / 2 + step / 2, np.pi / 2, step)
        rolls = np.linspace(0, 2 * np.pi, max(round(2 * np.pi * self._radius / step), 1), endpoint=False)
        angles = []
        for latitude in latitudes:
            count = max(round(2 * np.pi * np.cos(latitude) / step), 1)
            for longitude in np.linspace(-np.pi, np.pi, count, endpoint=False):
                column = int((width / 2 + longitude * self._projection.focal_px + 0.5) / factor) % known.shape[1]
                row = int((height / 2 + latitude * self._projection.focal_px + 0.5) / factor)
                if 0 <= row < len(known) and known[row, column] >= 0:
                    angles.append((longitude, -latitude))
        if not angles:
            return np.empty((0, 3, 3))
        yaw, pitch = np.array(angles).T[..., None]
        axes = (Rotation.from_rotvec(yaw * [0.0, 1.0, 0.0]) * Rotation.from_rotvec(pitch * [1.0, 0.0, 0.0])).as_matrix()
        turned = Rotation.from_rotvec(rolls[:, None] * [0.0, 0.0, 1.0]).as_matrix()
        return (axes[:, None] @ turned).reshape(-1, 3, 3)

    def _neighbours(self, places: list[Place], step: float) -> FloatArray:
        """Return the rotations (M, 3, 3) a step beside those of places in all directions, and their own."""
        steps = np.array([step, step, step / self._radius])
        turns = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * steps
        own = np.stack([place.R_wc for place in places])
        return (own[:, None] @ Rotation.from_rotvec(turns).as_matrix()).reshape(-1, 3, 3)


def _blurred(known: SingleArray) -> SingleArray:
    """Return blocks of the map as weighted means over their neighbours that are known."""
    is_known = known >= 0
    sums, weights = (_blur(values) for values in (np.where(is_known, known, 0.0), is_known.astype(np.float64)))
    return np.where(is_known, sums / np.where(is_known, weights, 1), -1).astype(np.float32)


def _blur(values: FloatArray) -> FloatArray:
    """Return blocks as weighted sums over their neighbours; columns form a circle."""
    rows = np.pad(values, ((1, 1), (0, 0)), mode="edge")
    down = np.sum([weight * rows[n : n + len(values)] for n, weight in enumerate(_BLUR)], axis=0)
    return np.asarray(np.sum([weight * np.roll(down, n - 1, axis=1) for n, weight in enumerate(_BLUR)], axis=0))


def _best(rotations: FloatArray, scores: FloatArray, count: int, apart_rad: float) -> list[Place]:
    """Return the best places, none nearer to a better one than so much."""
    order = np.argsort(-scores, kind="stable")[: 100 * count]
    order = order[scores[order] > 0]
    places: list[Place] = []
    flat = rotations.reshape(-1, 9)
    while len(order) and len(places) < count:
        best = order[0]
        places.append(Place(rotations[best], float(scores[best])))
        # The trace of `A^T B` is `1 + 2 cos` of the angle between two rotations.
        order = order[flat[order] @ flat[best] < 1 + 2 * np.cos(apart_rad)]
    return places
