"""Rooms: textured rectangles around the camera, at finite distances.

The walls carry a panorama as it is seen from the origin: from there a room looks like that panorama, and from
elsewhere its parallax shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.cube_map import FACES, blur_panorama, pad_panorama
from cmaxslam_fbp.simulation.scene_map import SceneMap, log_levels, quantise_levels

# Walls in units of the distance of the front wall: right and left, below and above, behind.
SHAPES = {"box": (1.5, 1.25, 2.0), "wall": (4.0, 4.0, 4.0), "clutter": (1.5, 1.25, 2.0)}

_MARGIN = 4
_MAX_SIZE = 2048  # texels per side of a wall
_BOARDS = 8
_SOFT_PX = 1.0  # pixels over which the border of a board fades


@dataclass(frozen=True)
class Rectangle:
    """A rectangle of the plane `axes[2].P = distance_m`, whose foot point is the origin of its coordinates.

    Attributes
    ----------
    axes : (3, 3)
        Rows: right, down and forward, away from the origin of the room.
    distance_m : float
        From the origin to the foot point.
    bounds_m : (4,)
        First and last coordinate to the right, first and last one down.
    texture_axes : (3, 3)
        As seen from the origin, it shows the panorama around `texture_axes[2]`.
    is_board : bool
        Whether it stands inside the room, before walls.
    """

    axes: FloatArray
    distance_m: float
    bounds_m: FloatArray
    texture_axes: FloatArray
    is_board: bool = False


def furnish(shape: str, distance_m: float, seed: int) -> list[Rectangle]:
    """Return the walls of a room, and the boards in it, from back to front; its front wall is `distance_m` away."""
    right, below, behind = distance_m * np.array(SHAPES[shape])
    corner = np.array([[-right, -below, -behind], [right, below, distance_m]])
    rectangles = []
    for axes in FACES:
        ends = corner @ axes.T  # of the room, along right, down and forward of this wall
        bounds = np.concatenate([np.sort(ends[:, 0]), np.sort(ends[:, 1])])
        rectangles.append(Rectangle(axes, float(ends[:, 2].max()), bounds, axes))
    if shape == "clutter":
        rectangles += _boards(distance_m, np.random.default_rng([seed, 0x526F6F6D]))
    return rectangles


def _boards(distance_m: float, rng: np.random.Generator) -> list[Rectangle]:
    """Boards at several distances before the front wall, each with another part of the panorama on it."""
    boards = []
    for share in np.linspace(0.85, 0.5, _BOARDS):
        yaw, pitch = rng.uniform(-50, 50), rng.uniform(-35, 35)
        centre = Rotation.from_euler("YX", [yaw, pitch], degrees=True).apply([0, 0, share * distance_m])
        turned = np.array([yaw, pitch, 0.0]) + rng.uniform(-25, 25, 3)
        tilt = Rotation.from_euler("YXZ", turned, degrees=True)
        axes = tilt.as_matrix().T
        u, v, depth = axes @ centre
        half = share * distance_m * rng.uniform(0.08, 0.2, 2)
        bounds = np.array([u - half[0], u + half[0], v - half[1], v + half[1]])
        behind = Rotation.from_euler("y", 180, degrees=True).as_matrix()
        boards.append(Rectangle(axes, float(depth), bounds, axes @ behind, is_board=True))
    return boards


@dataclass(frozen=True, eq=False)
class RoomMap(SceneMap):
    """Log intensity `texels` (F, size, size) on rectangles, `scales` (F,) texels per metre; see `SceneMap`."""

    rectangles: list[Rectangle]
    scales: FloatArray

    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the matrices (F, 9, K) from bearings to inverse distances and texels, see `sample_room`.

        A camera at `p` sees along `r = R b` the point `p + s r` of the plane `f.P = h`, with `1/s = f.r / (h - f.p)`;
        it lies at `s (right.r) + right.p` to the right of the foot point.
        """
        steps = len(rotations)
        p = np.zeros((steps, 3)) if positions is None else positions
        matrices = np.empty((len(self.rectangles), 3, 3, steps))
        for f, (rectangle, scale) in enumerate(zip(self.rectangles, self.scales, strict=True)):
            seen = np.einsum("ij,kjl->ilk", rectangle.axes, rotations)
            right, down, ahead = rectangle.axes @ p.T
            inverse = seen[2] / (rectangle.distance_m - ahead)
            matrices[f, 0] = scale * (seen[0] + right * inverse)
            matrices[f, 1] = scale * (seen[1] + down * inverse)
            matrices[f, 2] = inverse
        return np.ascontiguousarray(matrices.reshape(-1, 9, steps), np.float32), np.zeros(9, np.float32)

    def distances(self, directions: npt.ArrayLike, position: npt.ArrayLike = (0.0, 0.0, 0.0)) -> FloatArray:
        """Return the distance in metres (N,) of what is seen from a position (3,) along unit directions (N, 3)."""
        rays, p = np.asarray(directions, np.float64), np.asarray(position, np.float64)
        nearest = np.zeros(len(rays))
        for rectangle in self.rectangles:  # from back to front, as they are drawn
            u, v, ahead = rectangle.axes @ rays.T
            right, down, depth = rectangle.axes @ p
            with np.errstate(divide="ignore", invalid="ignore"):
                s = (rectangle.distance_m - depth) / ahead
                u, v = right + s * u, down + s * v
            left, last, top, bottom = rectangle.bounds_m
            hit = (s > 0) & (u >= left) & (u <= last) & (v >= top) & (v <= bottom)
            nearest[hit] = s[hit]
        return nearest

    def nearest_m(self, positions: FloatArray) -> FloatArray:
        """Return a bound (K,) from below of the distance of anything from positions (K, 3); negative outside."""
        bounds = []
        for rectangle in self.rectangles:
            local = positions @ rectangle.axes.T
            depth = rectangle.distance_m - local[:, 2]
            if rectangle.is_board:
                left, right, top, bottom = rectangle.bounds_m
                aside = np.maximum(np.maximum(left - local[:, 0], local[:, 0] - right), 0)
                above = np.maximum(np.maximum(top - local[:, 1], local[:, 1] - bottom), 0)
                depth = np.sqrt(depth**2 + aside**2 + above**2)
            bounds.append(depth)
        return np.asarray(np.min(bounds, axis=0))


def make_room_map(rectangles: list[Rectangle], panorama: SingleArray, focal: float, blur_rad: float) -> RoomMap:
    """Paint a panorama of linear intensity, blurred by lens and pixel, on rectangles as the origin sees them.

    `focal` is the wanted number of texels per unit of tangent, which the sensor's pixels have half of.
    """
    from cmaxslam_fbp.simulation.cube_map_kernels import sample_face

    blurred = blur_panorama(panorama, blur_rad) if blur_rad > 0 else panorama
    padded = pad_panorama(log_levels(blurred), _MARGIN)
    tangents = [float(np.abs(r.bounds_m).max()) / r.distance_m for r in rectangles]
    largest = (_MAX_SIZE - 3) / 2
    focals = np.array([min(focal, largest / tangent) for tangent in tangents])
    size = 2 * int(np.ceil(max(focals * tangents))) + 3
    texels = np.empty((len(rectangles), size, size), np.float32)
    extents = np.zeros((len(rectangles), 5), np.float32)
    scales = focals / [r.distance_m for r in rectangles]
    for f, rectangle in enumerate(rectangles):
        sample_face(padded, _MARGIN, panorama.shape[1], rectangle.texture_axes, float(focals[f]), texels[f])
        extents[f, :4] = scales[f] * rectangle.bounds_m
        if rectangle.is_board:
            extents[f, 4] = 2 * _SOFT_PX
        else:  # walls meet without a gap
            extents[f] += np.array([-0.01, 0.01, -0.01, 0.01, 0])
            extents[f, 4] = 0
    quantise_levels(texels)
    return RoomMap(texels, 1.0, rectangles, scales, extents=extents)  # the matrices give texels
