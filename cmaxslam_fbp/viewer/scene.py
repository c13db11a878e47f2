"""What a viewer shows of a run at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.viewer.surfaces import Surface, joined, sphere_surface, tube_surface

_MOST_PATH_POINTS = 2000
_PATH_RADIUS, _FRUSTUM_RADIUS = 0.004, 0.006
_BEFORE_WALL = 0.99  # lines lie just before the sphere, so that it does not hide them


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
