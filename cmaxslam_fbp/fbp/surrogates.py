"""The surrogates that the paper compares with: heuristics in the place of `kappa`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.fbp.kernels import Kernel, inside, k_linear

_SLOPE = 10.0
_CUT = 2.5  # the printed sigmoid never ends; beyond this it is below 2.1e-9


def surrogate_ste(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The straight-through estimator: `kappa'(x) = -sgn(x)` on |x| < 1, the derivative of the linear kernel.

    Its antiderivative, the triangle, stands for `kappa` in the other dimensions; `kappa'' = 0` almost everywhere.
    """
    return k_linear(x, order)


def surrogate_sigmoid(x: npt.ArrayLike, order: int = 0) -> FloatArray:
    """The smoothed box `s(x) = sigma(10 (x + 1/2)) - sigma(10 (x - 1/2))` on [-5/2, 5/2), and its derivatives.

    The paper prints `kappa'(x) = sigma'(10 (x + 1/2)) - sigma'(10 (x - 1/2))`, which is `s'(x) / 10`. The
    factor multiplies the whole synthesized derivative once, whatever the dimension (`Kernel.scale`).
    """
    x = np.asarray(x, np.float64)

    def sigma(z: FloatArray) -> FloatArray:
        value = 1 / (1 + np.exp(-np.abs(z)))  # of |z|, which cannot overflow; even orders of it below are signed
        if order == 0:
            return np.where(z >= 0, value, 1 - value)
        slope = _SLOPE * value * (1 - value)
        return slope if order == 1 else np.sign(z) * _SLOPE * slope * (1 - 2 * value)

    step = sigma(_SLOPE * (x + 0.5)) - sigma(_SLOPE * (x - 0.5))
    return step * inside(x, -_CUT, _CUT)


STE = Kernel(surrogate_ste, 1.0)
SIGMOID = Kernel(surrogate_sigmoid, _CUT, 1 / _SLOPE)
