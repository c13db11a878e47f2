"""What a viewer shows of a run at a time, as triangles: the map's sphere from within, and lines as tubes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory import RotationTrajectory

_MOST_PATH_POINTS = 2000
_PATH_RADIUS, _FRUSTUM_RADIUS = 0.004, 0.006
_BEFORE_WALL = 0.99  # lines lie just before the sphere, so that it does not hide them


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles (T, 3) of vertices (V, 3), with texture coordinates (T, 3, 2) where they carry a picture."""

    vertices: FloatArray
    triangles: npt.NDArray[np.int32]
    uvs: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """A map, a trajectory and a camera.

    Attributes
    ----------
    picture : (height, width, 3) uint8
        The map, red-green-blue.
    trajectory : RotationTrajectory
        `R_wc`.
    field_of_view : (K, 3) float64
        The sensor's border as unit directions in the camera frame; none where it is not known.
    """

    picture: npt.NDArray[np.uint8]
    trajectory: RotationTrajectory
    field_of_view: FloatArray | None

    @cached_property
    def sphere(self) -> Surface:
        """The map's sphere."""
        height, width = self.picture.shape[:2]
        return sphere_surface(width, height)

    @cached_property
    def path(self) -> Surface:
        """Where the camera looked, as a tube on the sphere."""
        stride = -(-len(self.trajectory) // _MOST_PATH_POINTS)
        axes = self.trajectory.rotations[::stride].apply([0.0, 0.0, 1.0])
        return tube_surface(_BEFORE_WALL * axes, _PATH_RADIUS)

    def frustum(self, share: float) -> Surface:
        """Return the camera's frustum at a share, 0 to 1, of the time: border on the sphere, edges to the centre."""
        start_ns, end_ns = self.trajectory.start_ns, self.trajectory.end_ns
        t_ns = start_ns + round(min(max(share, 0.0), 1.0) * (end_ns - start_ns))
        rotation = self.trajectory.rotation_at(t_ns)
        if self.field_of_view is None:
            axis = _BEFORE_WALL * rotation.apply([0.0, 0.0, 1.0])
            return tube_surface(np.array([np.zeros(3), axis]), _FRUSTUM_RADIUS)
        border = _BEFORE_WALL * rotation.apply(self.field_of_view)
        corners = border[:: len(border) // 4][:4]
        edges = [tube_surface(np.array([np.zeros(3), corner]), _FRUSTUM_RADIUS) for corner in corners]
        return joined([tube_surface(np.vstack([border, border[:1]]), _FRUSTUM_RADIUS), *edges])


def sphere_surface(width: int, height: int, columns: int = 128, rows: int = 64) -> Surface:
    """Return the unit sphere that carries a panorama of `width` x `height` pixels, visible from within.

    Only its inner side faces outwards of a mesh: seen from outside, the near half is open and the far half shows.
    """
    x, y = np.meshgrid(np.linspace(0, width, columns + 1), height / 2 + width / 4 * np.linspace(-1, 1, rows + 1))
    vertices = Equirectangular(width, height).unproject(np.stack([x, y], axis=-1)).reshape(-1, 3)
    # Not beyond the middles of the outermost pixels: what a texture has outside is not the map's.
    u = np.clip((x + 0.5) / width, 0.5 / width, 1 - 0.5 / width)
    v = np.clip((y + 0.5) / height, 0.5 / height, 1 - 0.5 / height)
    uvs = np.stack([u, v], axis=-1).reshape(-1, 2)
    corner = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).reshape(-1)
    below = corner + columns + 1
    triangles = np.concatenate(
        [np.column_stack([corner, corner + 1, below]), np.column_stack([corner + 1, below + 1, below])]
    )
    inward = np.einsum("ij,ij->i", _normals(vertices, triangles), vertices[triangles].mean(axis=1)) <= 0
    triangles = np.where(inward[:, None], triangles, triangles[:, ::-1]).astype(np.int32)
    return Surface(vertices, triangles, uvs[triangles])


def tube_surface(points: FloatArray, radius: float, sides: int = 8) -> Surface:
    """Return a tube around the line through points (N, 3), open at its ends."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    points = points[np.concatenate([[True], steps > 1e-9])]
    if len(points) < 2:
        return Surface(np.empty((0, 3)), np.empty((0, 3), np.int32))
    along = np.gradient(points, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    least = np.eye(3)[np.argmin(np.abs(along), axis=1)]  # an axis that is never parallel to the line
    first = np.cross(along, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(along, first)
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    ring = np.cos(angles)[None, :, None] * first[:, None] + np.sin(angles)[None, :, None] * second[:, None]
    # A ring starts where the one before it does, however the frame has turned between them.
    for index in range(1, len(ring)):
        shift = int(np.argmax(ring[index] @ ring[index - 1][0]))
        ring[index] = np.roll(ring[index], -shift, axis=0)
    vertices = (points[:, None] + radius * ring).reshape(-1, 3)
    here = np.arange(len(points) - 1)[:, None] * sides + np.arange(sides)
    beside = np.arange(len(points) - 1)[:, None] * sides + (np.arange(sides) + 1) % sides
    one = np.stack([here, beside, here + sides], axis=-1).reshape(-1, 3)
    two = np.stack([beside, beside + sides, here + sides], axis=-1).reshape(-1, 3)
    return Surface(vertices, np.concatenate([one, two]).astype(np.int32))


def joined(surfaces: list[Surface]) -> Surface:
    """Return several surfaces without pictures as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])
    triangles = [surface.triangles + start for surface, start in zip(surfaces, starts, strict=False)]
    return Surface(
        np.concatenate([surface.vertices for surface in surfaces]), np.concatenate(triangles).astype(np.int32)
    )


def _normals(vertices: FloatArray, triangles: npt.NDArray[np.integer]) -> FloatArray:
    a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
    return np.cross(b - a, c - a)
