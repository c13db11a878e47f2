"""Rotations, one or many, as unit quaternions: what of `scipy.spatial.transform.Rotation` the program needs.

The names are SciPy's, and the two multiply with each other. SciPy's own takes as long to import as a short run needs in
all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

_SMALL_ANGLE_RAD = 1e-3  # below it two terms of a series are exact


class Rotation:
    """Rotations of shape (...), which multiply, slice and broadcast like arrays.

    Parameters
    ----------
    quaternions : (..., 4) float64
        Of unit length, in the order x y z w.
    """

    def __init__(self, quaternions: FloatArray) -> None:
        self._quaternions = quaternions

    @staticmethod
    def identity() -> Rotation:
        """Return no rotation."""
        return Rotation(np.array([0.0, 0.0, 0.0, 1.0]))

    @staticmethod
    def from_quat(quaternions: npt.ArrayLike) -> Rotation:
        """Make rotations of quaternions `xyzw` (..., 4) of any length but zero."""
        given = np.asarray(quaternions, np.float64)
        return Rotation(given / np.linalg.norm(given, axis=-1, keepdims=True))

    @staticmethod
    def from_rotvec(vectors: npt.ArrayLike) -> Rotation:
        """Make rotations of rotation vectors (..., 3) in radians: `(sin(a/2) v/a, cos(a/2))` with `a = |v|`."""
        given = np.asarray(vectors, np.float64)
        angle = np.linalg.norm(given, axis=-1, keepdims=True)
        small = angle < _SMALL_ANGLE_RAD
        scale = np.where(small, 0.5 - angle**2 / 48, np.sin(angle / 2) / np.where(small, 1.0, angle))
        return Rotation(np.concatenate([scale * given, np.cos(angle / 2)], axis=-1))

    @staticmethod
    def from_matrix(matrices: npt.ArrayLike) -> Rotation:
        """Make rotations of rotation matrices (..., 3, 3): the row of `4 q q^T` with the largest diagonal element."""
        m = np.asarray(matrices, np.float64)
        products = np.empty((*m.shape[:-2], 4, 4))
        trace = np.trace(m, axis1=-2, axis2=-1)
        products[..., :3, :3] = m + np.swapaxes(m, -1, -2)
        for axis in range(3):
            products[..., axis, axis] += 1 - trace
        across = np.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1)
        products[..., 3, :3] = products[..., :3, 3] = across
        products[..., 3, 3] = 1 + trace
        largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)[..., None, None]
        return Rotation.from_quat(np.take_along_axis(products, largest, axis=-2)[..., 0, :])

    def as_quat(self) -> FloatArray:
        """Return the quaternions `xyzw` (..., 4)."""
        return self._quaternions.copy()

    def as_rotvec(self) -> FloatArray:
        """Return the rotation vectors (..., 3) in radians, of length at most pi."""
        q = np.where(self._quaternions[..., 3:] < 0, -self._quaternions, self._quaternions)
        sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
        angle = 2 * np.arctan2(sine, q[..., 3:])
        small = angle < _SMALL_ANGLE_RAD
        scale = np.where(small, 2 + angle**2 / 12, angle / np.where(small, 1.0, sine))
        return np.asarray(scale * q[..., :3])

    def as_matrix(self) -> FloatArray:
        """Return the rotation matrices (..., 3, 3)."""
        x, y, z, w = np.moveaxis(self._quaternions, -1, 0)
        rows = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def inv(self) -> Rotation:
        """Return the inverse rotations."""
        return Rotation(self._quaternions * (-1.0, -1.0, -1.0, 1.0))

    def magnitude(self) -> Any:
        """Return the angles (...) in radians, from zero to pi."""
        q = self._quaternions
        return 2 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))

    def mean(self) -> Rotation:
        """Return the chordal mean of rotations (N,): the eigenvector of `sum q q^T` with the largest eigenvalue."""
        return Rotation(np.linalg.eigh(self._quaternions.T @ self._quaternions)[1][:, -1])

    def apply(self, vectors: npt.ArrayLike) -> FloatArray:
        """Return the turned vectors (..., 3)."""
        return np.asarray((self.as_matrix() @ np.asarray(vectors, np.float64)[..., None])[..., 0])

    def __mul__(self, other: Any) -> Rotation:
        """Return the rotations that turn by `other` first, and then by these."""
        return Rotation(_product(self._quaternions, other.as_quat()))

    def __rmul__(self, other: Any) -> Rotation:
        return Rotation(_product(other.as_quat(), self._quaternions))

    def __getitem__(self, index: Any) -> Rotation:
        return Rotation(self._quaternions[index])

    def __len__(self) -> int:
        return len(self._quaternions)


def _product(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the product (..., 4) of two quaternions `xyzw`; column by column, for little memory."""
    (a, b, c, w), (x, y, z, v) = np.moveaxis(p, -1, 0), np.moveaxis(q, -1, 0)
    product = np.empty((*np.broadcast_shapes(p.shape, q.shape)[:-1], 4))
    product[..., 0] = w * x + v * a + (b * z - c * y)
    product[..., 1] = w * y + v * b + (c * x - a * z)
    product[..., 2] = w * z + v * c + (a * y - b * x)
    product[..., 3] = w * v - (a * x + b * y + c * z)
    return product
