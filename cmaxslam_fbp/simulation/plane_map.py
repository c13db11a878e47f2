"""A flat scene as the sensor samples it: log intensity on a plane across the world's z axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.scene_map import SceneMap, log_levels, quantise_levels

# Takes every bearing to the direction z, which is that of the first face: a plane has no other.
_AHEAD = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1], np.float32)


@dataclass(frozen=True, eq=False)
class PlaneMap(SceneMap):
    """Log intensity `texels` (1, size, size) on the plane `z = depth_m` of the world.

    The point (X, Y, depth_m) is the texel at `focal (X, Y) / depth_m + (size - 1) / 2`: seen from the origin this is
    one face of a cube map.
    """

    depth_m: float

    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the homographies (1, 9, K) from bearings to the plane, in units of its depth, and the face's choice.

        A camera at `p` with the rotation `R_wc` sees along the bearing `b` the point `p + s R b`, with
        `s = (depth - p_z) / (R b)_z`. In homogeneous coordinates, relative to the depth, that is `A R b` with
        `A = [[1 - p_z, 0, p_x], [0, 1 - p_z, p_y], [0, 0, 1]]`.
        """
        steps = len(rotations)
        p = np.zeros((steps, 3)) if positions is None else positions / self.depth_m
        shifts = np.tile(np.eye(3), (steps, 1, 1))
        shifts[:, 0, 0] = shifts[:, 1, 1] = 1 - p[:, 2]
        shifts[:, :2, 2] = p[:, :2]
        matrices = np.einsum("kij,kjl->ilk", shifts, rotations).reshape(1, 9, steps)
        return np.ascontiguousarray(matrices, np.float32), _AHEAD


def make_plane_map(image: SingleArray, focal: float, depth_m: float, blur_px: float) -> PlaneMap:
    """Turn a square image of linear intensity, `focal` pixels per unit of tangent, into its blurred logarithm.

    The blur, a Gaussian of `blur_px` of the image's pixels, is that of lens and pixel; it is applied to the intensity,
    as light adds, before the logarithm.
    """
    import cv2

    blurred = cv2.GaussianBlur(image, (0, 0), blur_px) if blur_px > 0 else image
    texels = np.ascontiguousarray(log_levels(np.asarray(blurred, np.float32))[None])
    quantise_levels(texels)
    return PlaneMap(texels, float(focal), float(depth_m))
