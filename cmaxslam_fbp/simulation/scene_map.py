"""What the sensor asks of a scene: square faces of texels, and where the pixels meet them."""

from __future__ import annotations

from typing import Protocol

from cmaxslam_fbp.arrays import FloatArray, SingleArray


class SceneMap(Protocol):
    """Log intensity on one or more faces, seen through a matrix per face and rendering.

    The matrix takes a bearing to `(x, y, z)`, which meets the face's texels at `focal (x, y) / z + (size - 1) / 2`.
    """

    @property
    def texels(self) -> SingleArray:
        """Log intensity (faces, size, size)."""
        ...

    @property
    def focal(self) -> float:
        """Texels per unit of tangent."""
        ...

    @property
    def size(self) -> int:
        """Texels per side."""
        ...

    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the matrices (faces, 9, K) of poses `R_wc` (K, 3, 3) and positions (K, 3) in metres.

        The second value is a matrix (9,) that takes a bearing to the direction that chooses the pixel's face, by its
        largest coordinate as in `cube_face`, for all K renderings.
        """
        ...
