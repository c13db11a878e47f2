"""The paper's reconstruction kernels `l`, with which the cotangent is interpolated between the bins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.fbp.kernels import Kernel, inside, k_linear


def l_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`l(x) = max(1 - |x|, 0)`: the cotangent is interpolated linearly between bins."""
    return k_linear(x, order)


def l_cubic(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """Keys' kernel, a = -1/2: `1.5|x|^3 - 2.5 x^2 + 1` on |x| < 1, `-0.5|x|^3 + 2.5 x^2 - 4|x| + 2` on 1 <= |x| < 2."""
    x = np.asarray(x, np.float64)
    a = np.abs(x)
    # The second derivative jumps at -2, -1, 1 and 2: take the right limit there.
    is_inner, is_outer = (x >= -1) & (x < 1), (x >= -2) & (x < 2)
    if order == 0:
        inner, outer = 1.5 * a**3 - 2.5 * a**2 + 1, -0.5 * a**3 + 2.5 * a**2 - 4 * a + 2
    elif order == 1:
        inner, outer = np.sign(x) * (4.5 * a**2 - 5 * a), np.sign(x) * (-1.5 * a**2 + 5 * a - 4)
    else:
        inner, outer = 9 * a - 5, 5 - 3 * a
    return np.select([is_inner, is_outer], [inner, outer], 0.0)


def l_lanczos(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`l(x) = sinc(x) sinc(x / 2)` on [-2, 2), or `2 sin(pi x) sin(pi x / 2) / (pi x)^2`. Its integral is 1.0098."""
    x = np.asarray(x, np.float64)
    half = x / 2
    if order == 0:
        value = _sinc(x, 0) * _sinc(half, 0)
    elif order == 1:
        value = _sinc(x, 1) * _sinc(half, 0) + _sinc(x, 0) * _sinc(half, 1) / 2
    else:
        value = _sinc(x, 2) * _sinc(half, 0) + _sinc(x, 1) * _sinc(half, 1) + _sinc(x, 0) * _sinc(half, 2) / 4
    return value * inside(x, -2, 2)


def _sinc(x: FloatArray, order: int) -> FloatArray:
    """`s(x) = sin(pi x) / (pi x)`, `s' = (cos(pi x) - s) / x`, `s'' = -pi^2 s - 2 s' / x`; a series near zero."""
    if order == 0:
        return np.sinc(x)
    small = np.abs(x) < 0.05
    y = np.where(small, 1.0, x)
    first = (np.cos(np.pi * y) - np.sinc(y)) / y
    z = (np.pi * x) ** 2
    if order == 1:
        series = np.pi**2 * x * (-1 / 3 + z / 30 - z**2 / 840 + z**3 / 45360 - z**4 / 3991680)
        return np.where(small, series, first)
    series = np.pi**2 * (-1 / 3 + z / 10 - z**2 / 168 + z**3 / 6480 - z**4 / 443520)
    return np.where(small, series, -(np.pi**2) * np.sinc(y) - 2 * first / y)


LINEAR = Kernel(l_linear, 1.0)
CUBIC = Kernel(l_cubic, 2.0)
LANCZOS = Kernel(l_lanczos, 2.0)
