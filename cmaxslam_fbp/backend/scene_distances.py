"""How far away the scene is in each direction from the map's centre: a smooth function on the sphere."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

TABLE = Equirectangular(512, 256)  # directions whose distance is tabulated

_WEAKEST = 1e-4  # of the variance of the strongest harmonic over what is seen
_LIMIT = 1.0  # of |log rho|: distances lie within a factor of 2.7 of their mean


class SceneDistances:
    """`log rho(d) = L tanh(sum_j s_j Y_j(d) / L)`: inverse distances in units of that of the mean scene.

    `Y_j` span the real spherical harmonics of degree 1 to `degree`; over the directions that events come from they have
    zero means, mean squares of one, and no correlation. This is the gauge, in which the mean of `log rho` is zero (but
    for the tanh), and in which `s_j` are relative distances. Degree 0, no harmonics, is a sphere.

    Parameters
    ----------
    degree : int
        The highest degree.
    counts : (cells,)
        How many events look at each cell of the table.
    """

    def __init__(self, degree: int, counts: FloatArray) -> None:
        self.degree, self._counts = degree, counts
        self.seen = np.flatnonzero(counts)
        weights = counts[self.seen] / counts.sum()
        basis = _harmonics(degree)[self.seen]
        self._means = weights @ basis
        basis = basis - self._means
        values, vectors = np.linalg.eigh((basis * weights[:, None]).T @ basis)
        kept = values > _WEAKEST * values.max(initial=0.0)  # what varies hardly over what is seen is left out
        self._mixing = vectors[:, kept] / np.sqrt(values[kept])
        self._basis = basis @ self._mixing

    @property
    def parameter_count(self) -> int:
        """The number of functions."""
        return int(self._basis.shape[1])

    def table(self, coefficients: FloatArray) -> FloatArray:
        """Return the inverse distances (cells,) of coefficients (J,); one where no event looks."""
        table = np.ones(len(self._counts))
        table[self.seen] = np.exp(_LIMIT * np.tanh(self._basis @ coefficients / _LIMIT))
        return table

    def gradient(self, coefficients: FloatArray, by_table: FloatArray) -> FloatArray:
        """Return the gradient (J,) by the coefficients, from that (cells,) by the table."""
        squashed = np.tanh(self._basis @ coefficients / _LIMIT)
        slopes = np.exp(_LIMIT * squashed) * (1 - squashed**2)
        return np.asarray((slopes * by_table[self.seen]) @ self._basis)

    def everywhere(self, coefficients: FloatArray) -> FloatArray:
        """Return the inverse distances (rows, columns) of the whole table, also where the harmonics only continue."""
        basis = _harmonics(self.degree) - self._means
        log_rho = _LIMIT * np.tanh(basis @ (self._mixing @ coefficients) / _LIMIT)
        return np.exp(log_rho).reshape(TABLE.height, TABLE.width)

    def fit(self, table: FloatArray) -> FloatArray:
        """Return the coefficients that come closest to a table of inverse distances where events look."""
        squashed = np.clip(np.log(table[self.seen]) / _LIMIT, -0.99, 0.99)
        weights = self._counts[self.seen] / self._counts.sum()
        return np.asarray((_LIMIT * np.arctanh(squashed) * weights) @ self._basis)


def as_single(table: FloatArray) -> SingleArray:
    """Return a table as the kernels take it."""
    return table.astype(np.float32)


def directions(table: Equirectangular) -> FloatArray:
    """Return the direction (cells, 3) of every cell of a table."""
    rows, columns = np.mgrid[: table.height, : table.width]
    return table.unproject(np.stack([columns, rows], axis=-1)).reshape(-1, 3)


@lru_cache(maxsize=1)
def _harmonics(degree: int) -> FloatArray:
    """Return the real spherical harmonics of degrees 1 to `degree` of the table: (cells, (degree + 1)^2 - 1).

    Each has about the same mean square. The polar axis is the world's y, and azimuth counts from z to x.
    """
    if degree == 0:
        return np.empty((TABLE.width * TABLE.height, 0))
    from scipy.special import gammaln, lpmv

    x, y, z = directions(TABLE).T
    azimuth = np.arctan2(x, z)
    columns = []
    for n in range(1, degree + 1):
        for m in range(n + 1):
            polar = np.exp((gammaln(n - m + 1) - gammaln(n + m + 1)) / 2) * lpmv(m, n, y)
            columns.append(polar * np.cos(m * azimuth))
            if m:
                columns.append(polar * np.sin(m * azimuth))
    return np.stack(columns, axis=1)
