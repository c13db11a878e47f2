"""The kernel of the derivatives, `kappa = l * k`.

`convolve` gives it for any `l` and `k`. The paper prints it for the linear reconstruction only, and there `kappa_gauss`
misses absolute values in its last branch (`erf((x - 1)/sqrt 2)` must be `erf((|x| - 1)/sqrt 2)`); these three are
written down, in a form that is right for either sign.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import KERNELS, RECONSTRUCTIONS, SURROGATES
from cmaxslam_fbp.fbp import kernels, reconstructions
from cmaxslam_fbp.fbp.kernels import GAUSS_CUT, Kernel, gauss_density, inside, k_gauss
from cmaxslam_fbp.fbp.reconstructions import l_linear

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def derivative_kernel(kernel: str, reconstruction: str | None, surrogate: str | None = None) -> Kernel:
    """Return what stands for `k` in every derivative with respect to the points.

    This is `kappa = l * k` for a reconstruction `l`, a heuristic surrogate where one is named (the
    reconstruction is then not used), and `k` itself, the plain derivative, for neither.
    """
    k: Kernel = KERNELS[kernel]
    if surrogate is not None:
        replaced: Kernel = SURROGATES[surrogate]
        return replaced
    return k if reconstruction is None else make_kappa(RECONSTRUCTIONS[reconstruction], k)


@lru_cache(maxsize=64)
def make_kappa(reconstruction: Kernel, kernel: Kernel) -> Kernel:
    """Return `kappa = l * k`, in closed form where the paper prints one."""
    function = _PRINTED.get((reconstruction, kernel)) or partial(convolve, reconstruction, kernel)
    return Kernel(function, reconstruction.radius + kernel.radius, reconstruction.scale * kernel.scale)


def convolve(reconstruction: Kernel, kernel: Kernel, x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa^(n)(x) = int l(y) k^(n)(x - y) dy + sum_b [k^(n-1)]_b l(x - b) + sum_b [k^(n-2)]_b l'(x - b)`.

    `[f]_b` is the jump of `f` at a break point `b` of `k`. Between the break points of both factors the integrand is
    smooth, for all kernels here even entire, and a Gauss-Legendre rule of 24 nodes is exact to the last bits.
    """
    l, k = reconstruction.function, kernel.function  # noqa: E741
    x = np.asarray(x, np.float64)
    kappa = np.zeros_like(x)
    # The break points of l are one bin apart, and so are those of k(x - y): each bin of l holds one, at `split`.
    split = np.mod(x + kernel.radius + reconstruction.radius, 1.0)[..., None]
    for low in reconstruction.break_points[:-1]:
        for start, width in ((0.0, split), (split, 1 - split)):
            y = low + start + width * (0.5 + 0.5 * _NODES)
            kappa += np.sum(0.5 * width * _WEIGHTS * l(y, 0) * k(x[..., None] - y, order), -1)
    for n in range(order):
        for b, jump in zip(kernel.break_points, kernel.jumps(n), strict=True):
            kappa += jump * l(x - b, order - 1 - n)
    return kappa


def kappa_rect_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The quadratic B-spline: `3/4 - x^2` on |x| < 1/2, `(3 - 2|x|)^2 / 8` on 1/2 <= |x| < 3/2."""
    x = np.asarray(x, np.float64)
    if order == 0:
        a = np.abs(x)
        return np.select([a < 0.5, a < 1.5], [0.75 - x * x, (3 - 2 * a) ** 2 / 8], 0.0)
    return l_linear(x + 0.5, order - 1) - l_linear(x - 0.5, order - 1)


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


def kappa_gauss_linear(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """`kappa(x) = K_2(x + 1) - 2 K_2(x) + K_2(x - 1)`, with `K_2'' = k` the cut Gaussian: error functions."""
    x = np.asarray(x, np.float64)
    if order == 2:
        return k_gauss(x + 1) - 2 * k_gauss(x) + k_gauss(x - 1)
    integral = [_gauss_integral(x + shift, 2 - order) for shift in (1, 0, -1)]
    return (integral[0] - 2 * integral[1] + integral[2]) * inside(x, -2.5, 2.5)


def _gauss_integral(x: FloatArray, times: int) -> FloatArray:
    """The integral from minus infinity of the gauss kernel, `K_1`, or that of it, `K_2`; with `c = min(x, 3/2)`

    `K_1(x) = (erf(c / sqrt 2) + erf(3/2 / sqrt 2)) / 2` and `K_2(x) = x K_1(x) + phi(c) - phi(3/2)`.
    """
    from scipy.special import erf

    end = np.clip(x, -GAUSS_CUT, GAUSS_CUT)
    once = (erf(end / np.sqrt(2)) + erf(GAUSS_CUT / np.sqrt(2))) / 2
    return np.asarray(once if times == 1 else x * once - (gauss_density(GAUSS_CUT) - gauss_density(end)))


_PRINTED = {
    (reconstructions.LINEAR, kernels.RECT): kappa_rect_linear,
    (reconstructions.LINEAR, kernels.LINEAR): kappa_linear_linear,
    (reconstructions.LINEAR, kernels.GAUSS): kappa_gauss_linear,
}
