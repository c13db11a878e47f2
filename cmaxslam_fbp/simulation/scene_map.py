"""A scene as the sensor samples it: log intensity, which is what its pixels see, on square faces of texels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray

# The darkest intensity relative to the brightest: a lens and a photoreceptor see no deeper black.
DARKEST = 0.01

# Levels are multiples of it. That is far below any threshold, and makes plain surfaces exactly constant.
_QUANTUM = np.float32(2.0**-12)


NO_EXTENTS: SingleArray = np.empty((0, 5), np.float32)


@dataclass(frozen=True, eq=False)
class SceneMap(ABC):
    """Log intensity on one or more faces, seen through a matrix per face and rendering.

    The matrix takes a bearing to `(x, y, z)`, which meets the face's texels at `focal (x, y) / z + (size - 1) / 2`.

    Attributes
    ----------
    texels : (faces, size, size) float32
        Log intensity.
    focal : float
        Texels per unit of tangent.
    extents : (faces, 5) float32
        Of rectangles in a room, see `sample_room`; none (0, 5) where the direction chooses the face.
    """

    texels: SingleArray
    focal: float
    extents: SingleArray = field(default_factory=lambda: NO_EXTENTS, kw_only=True)

    @property
    def size(self) -> int:
        """Texels per side."""
        return int(self.texels.shape[1])

    @abstractmethod
    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the matrices (faces, 9, K) of poses `R_wc` (K, 3, 3) and positions (K, 3) in metres.

        The second value is a matrix (9,) that takes a bearing to the direction that chooses the pixel's face, by its
        largest coordinate as in `cube_face`, for all K renderings.
        """

    def calm_texels(self, reach_rad: float) -> npt.NDArray[np.bool_]:
        """Return for every texel whether the level is one and the same within an angle; empty where that is no help."""
        return np.empty(0, bool)


def log_levels(intensity: SingleArray) -> SingleArray:
    """Return the logarithm of an image of linear intensity, with a darkest black."""
    brightest = float(intensity.max())
    return np.log(np.maximum(intensity, DARKEST * brightest))


def quantise_levels(levels: SingleArray) -> None:
    """Round levels, in place, to multiples of a quantum far below any threshold."""
    np.round(levels / _QUANTUM, out=levels)
    levels *= _QUANTUM
