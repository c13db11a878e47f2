"""Where the scene is constant: there the sensor need not sample it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.simulation.cube_map import CubeMap

_CELL = 8  # texels per side
_WORTH_IT = 0.1  # part of all texels below which looking them up costs more than it saves


def find_calm_texels(scene: CubeMap, reach_rad: float) -> npt.NDArray[np.bool_]:
    """Return for every texel (6 size^2,) whether the level is one and the same within an angle of `reach_rad`.

    A path that passes there and stays within the angle has that level all along, to the last bit. Found in cells of
    8 x 8 texels. Returns an empty array for a scene that is hardly calm anywhere.
    """
    size = scene.size
    cells = -(-size // _CELL)
    first = np.arange(cells) * _CELL
    tangent = (first + _CELL / 2 - (size - 1) / 2) / scene.focal
    # A turn by a small angle moves the point (u, v) of a face by at most (1 + u^2 + v^2) times the angle; with
    # some room for the growth on the way, for the cell's own extent and for the neighbours of a bilinear sample.
    stretch = 1.3 * (1 + tangent[:, None] ** 2 + tangent[None, :] ** 2)
    reach = np.ceil(reach_rad * scene.focal * stretch).astype(int) + 3
    top, left = (np.clip(first[axis] - reach, 0, size) for axis in ((slice(None), None), (None, slice(None))))
    bottom, right = (
        np.clip(first[axis] + _CELL + reach, 0, size) for axis in ((slice(None), None), (None, slice(None)))
    )
    calm = np.empty((6, size, size), bool)
    changes = np.zeros((size + 1, size + 1), np.int32)
    for face, texels in enumerate(scene.texels):
        differs = np.zeros((size, size), bool)
        differs[:, :-1] |= texels[:, :-1] != texels[:, 1:]
        differs[:-1] |= texels[:-1] != texels[1:]
        changes[1:, 1:] = differs.cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
        total = changes[bottom, right] - changes[top, right] - changes[bottom, left] + changes[top, left]
        calm[face] = np.repeat(np.repeat(total == 0, _CELL, axis=0), _CELL, axis=1)[:size, :size]
    return calm.reshape(-1) if calm.mean() > _WORTH_IT else np.empty(0, bool)
