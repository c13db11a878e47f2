"""Kernels as tables of polynomials: what the compiled and the tensor backends evaluate.

A point at `x` touches the bins `first .. first + support - 1`, and each of their weights depends only on
`u`, the position between two break points, `-1/2 <= u < 1/2`. Each such function of `u` is smooth, so one polynomial
gives it: exactly for the spline kernels, and to the working precision for the others. The polynomials are
fitted to the kernel's function, the only place where it is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev, polynomial

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.fbp.kernels import Kernel

_MAX_DEGREE = 48
_MAX_SPLINE_DEGREE = 5
# Largest errors of the kernel and its two derivatives, as parts of their largest values.
_TOLERANCES = {True: (1e-8, 1e-7, 1e-6), False: (1e-14, 1e-13, 1e-11)}


@dataclass(frozen=True, eq=False)
class KernelTable:
    """The weights of all bins that a point touches along one axis, as polynomials in `u`.

    Attributes
    ----------
    coefficients : (degree + 1, support) float64
        Column `s` holds the polynomial of bin `first + s`, highest power first (Horner's order).
    is_centred : bool
        Whether `u` is measured from the nearest bin centre (`round(x)`, odd support) or from the middle between
        two (`floor(x) + 1/2`, even support).
    reach : int
        The touched bins start at `round(x) - reach` or `floor(x) - reach`.
    """

    coefficients: FloatArray
    is_centred: bool
    reach: int

    @property
    def support(self) -> int:
        """The number of bins that a point touches."""
        return self.coefficients.shape[1]

    @property
    def degree(self) -> int:
        """The degree of the polynomials."""
        return self.coefficients.shape[0] - 1

    def derivative(self, order: int) -> FloatArray:
        """Return the coefficients (any degree, support) of the derivative, highest power first."""
        if order > self.degree:
            return np.zeros((1, self.support))
        return np.asarray(polynomial.polyder(self.coefficients[::-1], order)[::-1], np.float64)


@lru_cache(maxsize=256)
def kernel_table(kernel: Kernel, dimensions: int = 1, *, is_single_precision: bool = False) -> KernelTable:
    """Return the table of a kernel, whose `scale` enters a product over `dimensions` axes exactly once."""
    support = kernel.support
    is_centred = support % 2 == 1
    reach = (support - 1) // 2
    bins = np.arange(support) - reach
    shift = 0.0 if is_centred else 0.5
    check = np.linspace(-0.5, 0.5, 63)[1:-1, None]
    exact = [kernel.function(check + shift - bins, order) for order in range(3)]
    for degree in range(_MAX_DEGREE + 1):
        coefficients = _fit(kernel, bins - shift, degree)
        fits = [polynomial.polyval(check[:, 0], polynomial.polyder(coefficients, order)).T for order in range(3)]
        errors = [np.abs(f - e).max() / max(1, np.abs(e).max()) for f, e in zip(fits, exact, strict=True)]
        if all(error < bound for error, bound in zip(errors, _TOLERANCES[is_single_precision], strict=True)):
            break
    if degree <= _MAX_SPLINE_DEGREE:
        coefficients = _snap(coefficients)
    scaled = coefficients[::-1] * kernel.scale ** (1 / dimensions)
    scaled.setflags(write=False)
    return KernelTable(scaled, is_centred, reach)


@lru_cache(maxsize=1024)
def polynomials(table: KernelTable, order: int) -> tuple[tuple[float, ...], ...]:
    """Return the derivative's polynomial of every bin as plain numbers, highest power first."""
    return tuple(map(tuple, table.derivative(order).T.tolist()))


def lanes(support: int) -> int:
    """Return the width of the vector that holds one row of bins: the next power of two."""
    return 1 << (support - 1).bit_length()


def lane_table(coefficients: FloatArray, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the coefficients (degree + 1, support) with zero columns up to the width of a vector."""
    degrees, support = coefficients.shape
    padded = np.zeros((degrees, lanes(support)), dtype)
    padded[:, :support] = coefficients
    return padded


def _fit(kernel: Kernel, offsets: npt.NDArray[Any], degree: int) -> FloatArray:
    """Interpolate the kernel at Chebyshev nodes in [-1/2, 1/2]: (degree + 1, support), lowest power first."""
    nodes = chebyshev.chebpts1(degree + 1) / 2
    values = kernel.function(nodes[:, None] - offsets, 0)
    fitted = chebyshev.chebfit(2 * nodes, values, degree)
    powers = np.stack([np.pad(c := chebyshev.cheb2poly(column), (0, degree + 1 - len(c))) for column in fitted.T], 1)
    return powers * 2.0 ** np.arange(degree + 1)[:, None]


def _snap(coefficients: FloatArray) -> FloatArray:
    """Replace the fitted coefficients of a spline by the small fractions that they are."""
    snapped = [float(Fraction(c).limit_denominator(4000)) for c in coefficients.ravel().tolist()]
    return np.array(snapped).reshape(coefficients.shape)
