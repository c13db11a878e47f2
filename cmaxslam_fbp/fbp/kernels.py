"""The kernels of the paper in closed form: binning `k`, reconstruction `l`, and `kappa = l * k` with two derivatives.

Every function takes `x` in bin widths and the `order` of the derivative, 0, 1 or 2, and returns float64.
At a break point the value is the one from the right, so that bin `j` owns `[j - 1/2, j + 1/2)` and neighbouring
bins never share a point. Derivatives are the pointwise ones: jumps contribute nothing.

The paper prints `kappa` for the linear reconstruction only, and there `kappa_gauss` misses absolute values in
its last branch (`erf((x - 1)/sqrt 2)` must be `erf((|x| - 1)/sqrt 2)`). The forms below are finite differences
of iterated integrals (`antiderivatives.py`), which are right for either sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

from .antiderivatives import (
    GAUSS_CUT,
    cubic_antiderivative,
    gauss_antiderivative,
    gauss_density,
    lanczos_antiderivative,
)

KernelFunction = Callable[[npt.ArrayLike, int], FloatArray]

SIGMOID_SLOPE = 10.0
SIGMOID_CUT = 2.5  # the printed sigmoid never ends; beyond this it is below 2.1e-9
_QUADRATURE_NODES, _QUADRATURE_WEIGHTS = np.polynomial.legendre.leggauss(40)


def _inside(x: FloatArray, low: float, high: float) -> FloatArray:
    return ((x >= low) & (x < high)).astype(np.float64)


def k_rect(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = 1` on [-1/2, 1/2). Its derivative is zero wherever it exists."""
    x = np.asarray(x, np.float64)
    return _inside(x, -0.5, 0.5) if order == 0 else np.zeros_like(x)


def k_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = 1 - |x|` on [-1, 1); `k' = +1` on [-1, 0) and `-1` on [0, 1); `k'' = 0`."""
    x = np.asarray(x, np.float64)
    if order == 0:
        return np.maximum(1 - np.abs(x), 0)
    return _inside(x, -1, 0) - _inside(x, 0, 1) if order == 1 else np.zeros_like(x)


def k_gauss(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`k(x) = phi(x)` on [-3/2, 3/2), with `phi' = -x phi` and `phi'' = (x^2 - 1) phi`. Its integral is 0.866."""
    x = np.asarray(x, np.float64)
    return (np.ones_like(x), -x, x * x - 1)[order] * gauss_density(x) * _inside(x, -GAUSS_CUT, GAUSS_CUT)


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
    return value * _inside(x, -2, 2)


def kappa_rect_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The quadratic B-spline: `3/4 - x^2` on |x| < 1/2, `(3 - 2|x|)^2 / 8` on 1/2 <= |x| < 3/2."""
    x = np.asarray(x, np.float64)
    if order == 0:
        a = np.abs(x)
        return np.select([a < 0.5, a < 1.5], [0.75 - x * x, (3 - 2 * a) ** 2 / 8], 0.0)
    return l_linear(x + 0.5, order - 1) - l_linear(x - 0.5, order - 1)


def kappa_rect_cubic(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = L(x + 1/2) - L(x - 1/2)`, with `L' = l` the integral of Keys' kernel: piecewise quartic."""
    x = np.asarray(x, np.float64)
    if order == 0:
        return (cubic_antiderivative(x + 0.5, 1) - cubic_antiderivative(x - 0.5, 1)) * _inside(x, -2.5, 2.5)
    return l_cubic(x + 0.5, order - 1) - l_cubic(x - 0.5, order - 1)


def kappa_rect_lanczos(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = L(x + 1/2) - L(x - 1/2)`, with `L' = l` the integral of Lanczos-2: sine integrals."""
    x = np.asarray(x, np.float64)
    if order == 0:
        return (lanczos_antiderivative(x + 0.5, 1) - lanczos_antiderivative(x - 0.5, 1)) * _inside(x, -2.5, 2.5)
    return l_lanczos(x + 0.5, order - 1) - l_lanczos(x - 0.5, order - 1)


def kappa_linear_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The cubic B-spline: `(4 + 3 (|x| - 2) x^2) / 6` on |x| < 1, `(2 - |x|)^3 / 6` on 1 <= |x| < 2."""
    x = np.asarray(x, np.float64)
    a, sign = np.abs(x), np.sign(x)
    if order == 0:
        branches = [(4 + 3 * (a - 2) * a * a) / 6, (2 - a) ** 3 / 6]
    elif order == 1:
        branches = [sign * (1.5 * a * a - 2 * a), -sign * (2 - a) ** 2 / 2]
    else:
        branches = [3 * a - 2, 2 - a]
    return np.select([a < 1, a < 2], branches, 0.0)


def kappa_linear_cubic(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = LL(x + 1) - 2 LL(x) + LL(x - 1)`, with `LL'' = l` Keys' kernel: piecewise quintic."""
    x = np.asarray(x, np.float64)
    if order == 2:
        return l_cubic(x + 1) - 2 * l_cubic(x) + l_cubic(x - 1)
    integral = [cubic_antiderivative(x + shift, 2 - order) for shift in (1, 0, -1)]
    return (integral[0] - 2 * integral[1] + integral[2]) * _inside(x, -3, 3)


def kappa_linear_lanczos(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = LL(x + 1) - 2 LL(x) + LL(x - 1)`, with `LL'' = l` Lanczos-2: sine and cosine integrals."""
    x = np.asarray(x, np.float64)
    if order == 2:
        return l_lanczos(x + 1) - 2 * l_lanczos(x) + l_lanczos(x - 1)
    integral = [lanczos_antiderivative(x + shift, 2 - order) for shift in (1, 0, -1)]
    return (integral[0] - 2 * integral[1] + integral[2]) * _inside(x, -3, 3)


def kappa_gauss_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = K_2(x + 1) - 2 K_2(x) + K_2(x - 1)`, with `K_2'' = k` the cut Gaussian: error functions."""
    x = np.asarray(x, np.float64)
    if order == 2:
        return k_gauss(x + 1) - 2 * k_gauss(x) + k_gauss(x - 1)
    integral = [gauss_antiderivative(x + shift, 2 - order) for shift in (1, 0, -1)]
    return (integral[0] - 2 * integral[1] + integral[2]) * _inside(x, -2.5, 2.5)


def kappa_gauss_cubic(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = sum_j a_j K_3(x - j) + b_j K_4(x - j)` over the knots j = -2 .. 2.

    `a_j` and `b_j` are the jumps of the second and third derivative of Keys' kernel at its knots, because
    `l(x) = sum_j a_j (x - j)_+^2 / 2 + b_j (x - j)_+^3 / 6`; `K_n` is the n-fold integral of the cut Gaussian.
    Evaluated left of zero, where the sum has fewer terms to cancel: `kappa` is even, `kappa'` odd.
    """
    signed = np.asarray(x, np.float64)
    x = -np.abs(signed)
    second_jumps, third_jumps = (-1.0, 2.0, 0.0, -2.0, 1.0), (3.0, -12.0, 18.0, -12.0, 3.0)
    kappa = np.zeros_like(x)
    for knot, a, b in zip(range(-2, 3), second_jumps, third_jumps, strict=True):
        kappa += a * gauss_antiderivative(x - knot, 3 - order) + b * gauss_antiderivative(x - knot, 4 - order)
    parity = -np.sign(signed) if order == 1 else 1.0
    return kappa * parity * _inside(signed, -3.5, 3.5)


def kappa_gauss_lanczos(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa^(n)(x) = integral of l^(n)(y) phi(x - y) dy` over the overlap of [-2, 2] and [x - 3/2, x + 3/2].

    No named functions give this integral. The integrand is entire on the overlap, so a Gauss-Legendre rule
    of 40 nodes is exact to the last bits. It holds for n = 1 and 2 because `l` and `l'` vanish at the ends.
    """
    x = np.asarray(x, np.float64)
    low, high = np.maximum(x - GAUSS_CUT, -2), np.minimum(x + GAUSS_CUT, 2)
    radius = np.maximum(high - low, 0)[..., None] / 2
    y = (low + high)[..., None] / 2 + radius * _QUADRATURE_NODES
    return np.sum(radius * _QUADRATURE_WEIGHTS * l_lanczos(y, order) * gauss_density(x[..., None] - y), -1)


def surrogate_ste(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The straight-through estimator: `kappa'(x) = -sgn(x)` on |x| < 1, the derivative of the linear kernel.

    Its antiderivative, the triangle, stands for `kappa` in the other dimensions; `kappa'' = 0` almost everywhere.
    """
    return k_linear(x, order)


def surrogate_sigmoid(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The smoothed box `s(x) = sigma(10 (x + 1/2)) - sigma(10 (x - 1/2))` on [-5/2, 5/2), and its derivatives.

    The paper prints `kappa'(x) = sigma'(10 (x + 1/2)) - sigma'(10 (x - 1/2))`, which is `s'(x) / 10`. The
    factor multiplies the whole synthesized derivative once, whatever the dimension (`derivative_kernel`).
    """
    x = np.asarray(x, np.float64)

    def sigma(z: FloatArray) -> FloatArray:
        value = 1 / (1 + np.exp(-np.abs(z)))  # of |z|, which cannot overflow; even orders of it below are signed
        if order == 0:
            return np.where(z >= 0, value, 1 - value)
        slope = SIGMOID_SLOPE * value * (1 - value)
        return slope if order == 1 else np.sign(z) * SIGMOID_SLOPE * slope * (1 - 2 * value)

    step = sigma(SIGMOID_SLOPE * (x + 0.5)) - sigma(SIGMOID_SLOPE * (x - 0.5))
    return step * _inside(x, -SIGMOID_CUT, SIGMOID_CUT)
