"""Iterated integrals of the kernels: what the closed forms of `kappa` are made of.

A convolution with a spline is a finite difference of iterated integrals. With `F_n` the n-fold integral of `f`,
`(rect * f)(x) = F_1(x + 1/2) - F_1(x - 1/2)` and `(linear * f)(x) = F_2(x + 1) - 2 F_2(x) + F_2(x - 1)`.
All functions take and return float64 arrays.
"""

from __future__ import annotations

from math import comb, factorial

import numpy as np
from scipy.special import erf, sici

from cmaxslam_fbp.arrays import FloatArray

GAUSS_CUT = 1.5
_LOW_RAD = np.pi / 2  # Lanczos-2 is (cos(a x) - cos(b x)) / (pi x)^2 with these two frequencies a and b
_HIGH_RAD = 3 * np.pi / 2


def gauss_density(x: FloatArray) -> FloatArray:
    """`phi(x) = exp(-x^2 / 2) / sqrt(2 pi)`, not cut."""
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gauss_antiderivative(x: FloatArray, times: int) -> FloatArray:
    """The `times`-fold integral from minus infinity of the gauss kernel, for 1 <= times <= 4.

    `K_n(x) = 1 / (n-1)! sum_j C(n-1, j) x^(n-1-j) (-1)^j M_j(x)`, with the moments
    `M_j(x) = integral of t^j phi(t) over [-3/2, min(x, 3/2)]`, which obey
    `M_j = (j - 1) M_(j-2) - [t^(j-1) phi(t)]`.
    """
    end = np.clip(x, -GAUSS_CUT, GAUSS_CUT)
    cut = np.array(GAUSS_CUT)
    moments = [
        (erf(end / np.sqrt(2)) + erf(cut / np.sqrt(2))) / 2,
        gauss_density(cut) - gauss_density(end),
    ]
    for j in range(2, times):
        boundary = end ** (j - 1) * gauss_density(end) - (-cut) ** (j - 1) * gauss_density(cut)
        moments.append((j - 1) * moments[j - 2] - boundary)
    n = times - 1
    terms = [comb(n, j) * x ** (n - j) * (-1) ** j * moments[j] for j in range(times)]
    return np.asarray(sum(terms)) / factorial(n)


def cubic_antiderivative(x: FloatArray, times: int) -> FloatArray:
    """The integral (1) or double integral (2) from zero of Keys' cubic kernel.

    `L(x) = 3/8 x^4 - 5/6 x^3 + x` on [0, 1), `-x^4/8 + 5/6 x^3 - 2 x^2 + 2 x - 1/6` on [1, 2), `1/2` beyond; odd.
    `LL(x)` integrates it once more; even.
    """
    a = np.abs(x)
    if times == 1:
        inner = 3 / 8 * a**4 - 5 / 6 * a**3 + a
        outer = -(a**4) / 8 + 5 / 6 * a**3 - 2 * a**2 + 2 * a - 1 / 6
        return np.sign(x) * np.select([a < 1, a < 2], [inner, outer], 0.5)
    inner = 3 / 40 * a**5 - 5 / 24 * a**4 + a**2 / 2
    outer = -(a**5) / 40 + 5 / 24 * a**4 - 2 / 3 * a**3 + a**2 - a / 6 + 1 / 60
    return np.select([a < 1, a < 2], [inner, outer], 53 / 60 + (a - 2) / 2)


def lanczos_antiderivative(x: FloatArray, times: int) -> FloatArray:
    """The integral (1) or double integral (2) from zero of the Lanczos-2 kernel, with `a = pi/2` and `b = 3 pi/2`.

    `L(x) = (b Si(b x) - a Si(a x)) / pi^2 - x l(x)`, constant beyond 2; odd.
    `LL(x) = (Ci(b x) - Ci(a x) - log(b/a) + b x Si(b x) - a x Si(a x) + cos(b x) - cos(a x)) / pi^2` for 0 < x < 2,
    `LL(2) + (x - 2) L(2)` beyond; even, zero at zero.
    """
    magnitude = np.abs(x)
    y = np.clip(magnitude, 1e-300, 2.0)
    low_si, low_ci = sici(_LOW_RAD * y)
    high_si, high_ci = sici(_HIGH_RAD * y)
    sines = (_HIGH_RAD * high_si - _LOW_RAD * low_si) / np.pi**2
    once = sines - y * np.sinc(y) * np.sinc(y / 2)
    if times == 1:
        return np.sign(x) * once
    cosines = high_ci - low_ci - np.log(3) + np.cos(_HIGH_RAD * y) - np.cos(_LOW_RAD * y)
    return np.asarray(y * sines + cosines / np.pi**2 + (magnitude - y) * once)
