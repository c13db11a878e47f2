"""The scene as the sensor samples it: log intensity on the six faces of a cube.

A cube has no poles and no seam, and a direction meets a face at `focal (x, y) / z`: no trigonometry per sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.simulation.scene_map import SceneMap, log_levels, quantise_levels

# Rows: right, down and forward of each face, in world axes. The order is that of `cube_face`.
FACES: FloatArray = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, -1]],
        [[0, 0, -1], [0, 1, 0], [1, 0, 0]],
        [[0, 0, 1], [0, 1, 0], [-1, 0, 0]],
        [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
        [[1, 0, 0], [0, 0, 1], [0, -1, 0]],
    ],
    np.float64,
)

# A face reaches this far beyond its share, as tangent: a pixel stays on one face for a whole block of
# renderings, over which it may move (see `schedule.MAX_BLOCK_RAD`).
REACH = 1.3

_MARGIN = 4

_CALM_CELL = 8  # texels per side
_WORTH_IT = 0.1  # part of all texels below which looking them up costs more than it saves


@dataclass(frozen=True, eq=False)
class CubeMap(SceneMap):
    """Log intensity `texels` (6, size, size); a face's coordinate is `focal (x, y) / z + (size - 1) / 2`."""

    def face_matrices(
        self, rotations: FloatArray, positions: FloatArray | None = None
    ) -> tuple[SingleArray, SingleArray]:
        """Return the matrices (6, 9, K) from the camera's to each face's axes, and the middle rotation (9,).

        `rotations` (K, 3, 3) are `R_wc`. A panorama is infinitely far away: positions make no difference to it.
        """
        steps = len(rotations)
        matrices = np.einsum("fij,kjl->filk", FACES, rotations).reshape(6, 9, steps)
        return np.ascontiguousarray(matrices, np.float32), rotations[steps // 2].reshape(9).astype(np.float32)

    def calm_texels(self, reach_rad: float) -> npt.NDArray[np.bool_]:
        """Return for every texel (6 size^2,) whether the level is one and the same within an angle of `reach_rad`.

        A path that passes there and stays within the angle has that level all along, to the last bit. Found in cells of
        8 x 8 texels. Returns an empty array for a scene that is hardly calm anywhere.
        """
        size = self.size
        cells = -(-size // _CALM_CELL)
        first = np.arange(cells) * _CALM_CELL
        tangent = (first + _CALM_CELL / 2 - (size - 1) / 2) / self.focal
        # A turn by a small angle moves the point (u, v) of a face by at most (1 + u^2 + v^2) times the angle; with
        # a margin for the growth on the way, for the cell's own extent and for the neighbours of a bilinear sample.
        stretch = 1.3 * (1 + tangent[:, None] ** 2 + tangent[None, :] ** 2)
        reach = np.ceil(reach_rad * self.focal * stretch).astype(int) + 3
        top, left = (np.clip(first[axis] - reach, 0, size) for axis in ((slice(None), None), (None, slice(None))))
        bottom, right = (
            np.clip(first[axis] + _CALM_CELL + reach, 0, size) for axis in ((slice(None), None), (None, slice(None)))
        )
        calm = np.empty((6, size, size), bool)
        changes = np.zeros((size + 1, size + 1), np.int32)
        for face, texels in enumerate(self.texels):
            differs = np.zeros((size, size), bool)
            differs[:, :-1] |= texels[:, :-1] != texels[:, 1:]
            differs[:-1] |= texels[:-1] != texels[1:]
            changes[1:, 1:] = differs.cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
            total = changes[bottom, right] - changes[top, right] - changes[bottom, left] + changes[top, left]
            calm[face] = np.repeat(np.repeat(total == 0, _CALM_CELL, axis=0), _CALM_CELL, axis=1)[:size, :size]
        return calm.reshape(-1) if calm.mean() > _WORTH_IT else np.empty(0, bool)


def pad_panorama(panorama: SingleArray, margin: int) -> SingleArray:
    """Continue a panorama by `margin` pixels: around at 180 degrees, and on the other side of the poles.

    Row 0 is the upper pole. The lower pole would be row `height`, one below the last: it gets that row's mean.
    """
    over = np.roll(panorama, panorama.shape[1] // 2, axis=1)
    lower_pole = np.full((1, panorama.shape[1]), panorama[-1].mean(), np.float32)
    tall = np.concatenate([over[margin:0:-1], panorama, lower_pole, over[:-margin:-1]])
    return np.concatenate([tall[:, -margin:], tall, tall[:, :margin]], axis=1)


def blur_panorama(panorama: SingleArray, sigma_rad: float) -> SingleArray:
    """Blur an equirectangular image by a Gaussian of `sigma_rad` on the sphere.

    Along a row at latitude b the Gaussian has `sigma / cos b`, applied by the row's Fourier series, which wraps
    at 180 degrees; columns continue on the other side of the poles.
    """
    import cv2

    height, width = panorama.shape
    focal = width / (2 * np.pi)
    sigma_px = sigma_rad * focal
    margin = int(np.ceil(4 * sigma_px)) + 1
    tall = pad_panorama(panorama, margin)[:, margin:-margin]
    columns = cv2.GaussianBlur(tall, (1, 2 * margin + 1), 0, sigmaY=sigma_px, borderType=cv2.BORDER_REPLICATE)
    columns = columns[margin : margin + height]
    latitude = (np.arange(height) - height / 2) / focal
    sigma_phase = sigma_rad / np.maximum(np.cos(latitude), 1e-6)
    orders = np.arange(width // 2 + 1)
    blurred = np.empty_like(panorama)
    for first in range(0, height, 256):  # in strips: the spectrum of a whole large panorama is large
        rows = slice(first, first + 256)
        damping = np.exp(-0.5 * (sigma_phase[rows, None] * orders) ** 2)
        blurred[rows] = np.fft.irfft(np.fft.rfft(columns[rows], axis=1) * damping, n=width, axis=1)
    return blurred


def make_cube_map(panorama: SingleArray, focal: float, blur_rad: float) -> CubeMap:
    """Turn a panorama of linear intensity into the cube map of its blurred logarithm.

    The blur is that of lens and pixel; it is applied to the intensity, as light adds, before the logarithm.
    """
    from cmaxslam_fbp.simulation.cube_map_kernels import sample_face

    blurred = blur_panorama(panorama, blur_rad) if blur_rad > 0 else panorama
    levels = log_levels(blurred)
    size = 2 * int(np.ceil(REACH * focal)) + 3
    padded = pad_panorama(levels, _MARGIN)
    texels = np.empty((6, size, size), np.float32)
    for face, axes in enumerate(FACES):
        sample_face(padded, _MARGIN, panorama.shape[1], axes, float(focal), texels[face])
    quantise_levels(texels)
    return CubeMap(texels, float(focal))
