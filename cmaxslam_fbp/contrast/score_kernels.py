"""Compiled sums over images, and the negative binomial's terms. Images are float32 or float64, sums float64.

Reductions may be reassociated so that they vectorise: the order is fixed by the compiled code, not by the run.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

from cmaxslam_fbp.compiling import REASSOCIATED, compiled

_SHIFT = 8  # the series of the Gamma function starts this far above its argument


@compiled(fastmath=REASSOCIATED)
def total(image):
    """Return the sum of a flat image."""
    result = 0.0
    for i in range(image.size):
        result += float(image[i])
    return result


@compiled(fastmath=REASSOCIATED)
def squares_about(image, centre):
    """Return `sum (h - centre)^2` of a flat image."""
    result = 0.0
    for i in range(image.size):
        difference = float(image[i]) - centre
        result += difference * difference
    return result


@compiled
def scale_about(image, centre, factor, out):
    """Write `factor (h - centre)`."""
    for i in range(image.size):
        out[i] = factor * (float(image[i]) - centre)


@compiled
def log_gamma_ratio(h, r):
    """Return `f(h) = log Gamma(h + r) - log Gamma(h + 1)` for `h >= 0`, `r > 0`.

    With `Gamma(x) = Gamma(x + n) / (x (x + 1) ... (x + n - 1))` and Stirling's series at `x + n`; logarithms of
    ratios are taken of the ratios, so that nothing cancels for large `h`.
    """
    above, below = 1.0, 1.0
    for j in range(_SHIFT):
        above *= h + 1.0 + j
        below *= h + r + j
    x, y = h + r + _SHIFT, h + 1.0 + _SHIFT
    return (
        math.log(above / below)
        + (x - 0.5) * math.log1p((r - 1.0) / y)
        + (r - 1.0) * (math.log(y) - 1.0)
        + _stirling(x)
        - _stirling(y)
    )


@compiled
def _stirling(x):
    """Return what `(x - 1/2) log x - x + log(2 pi) / 2` lacks to `log Gamma(x)`, for `x > 8`."""
    u = 1.0 / (x * x)
    series = 1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u * (1 / 1188 - u * (691 / 360360)))))
    return series / x


@compiled
def log_gamma_ratio_slope(h, r):
    """Return `f'(h) = psi(h + r) - psi(h + 1)`."""
    result = 0.0
    for j in range(_SHIFT):
        result += (r - 1.0) / ((h + 1.0 + j) * (h + r + j))
    x, y = h + r + _SHIFT, h + 1.0 + _SHIFT
    return result + math.log1p((r - 1.0) / y) + _digamma_tail(x) - _digamma_tail(y)


@compiled
def _digamma_tail(x):
    """Return `psi(x) - log x`, for `x > 8`."""
    u = 1.0 / (x * x)
    series = 1 / 12 - u * (1 / 120 - u * (1 / 252 - u * (1 / 240 - u * (1 / 132 - u * (691 / 32760)))))
    return -0.5 / x - u * series


@compiled
def log_gamma_ratio_curvature(h, r):
    """Return `f''(h) = psi'(h + r) - psi'(h + 1)`."""
    result = 0.0
    for j in range(_SHIFT):
        a, b = h + 1.0 + j, h + r + j
        # 1/b^2 - 1/a^2, without the difference of squares
        result += (1.0 - r) * (a + b) / (a * a * b * b)
    x, y = h + r + _SHIFT, h + 1.0 + _SHIFT
    return result + (1.0 - r) / (x * y) + _trigamma_tail(x) - _trigamma_tail(y)


@compiled
def _trigamma_tail(x):
    """Return `psi'(x) - 1/x`, for `x > 8`."""
    u = 1.0 / (x * x)
    series = 1 / 6 - u * (1 / 30 - u * (1 / 42 - u * (1 / 30 - u * (5 / 66 - u * (691 / 2730)))))
    return 0.5 * u + u * series / x


@compiled
def sum_log_gamma_ratio(image, r, table):
    """Return `sum f(h)` of a flat image; `table[k] = f(k)` serves the counts of a histogram."""
    result = 0.0
    for i in range(image.size):
        h = float(image[i])
        k = int(h)
        if k == h and 0 <= k < table.size:
            result += table[k]
        else:
            result += log_gamma_ratio(h, r)
    return result


@compiled
def write_derivatives(image, r, table, order, offset, out):
    """Write `f'(h) + offset` or `f''(h) + offset` of a flat image, by the order; `table[k]` is that at `k`."""
    for i in range(image.size):
        h = float(image[i])
        k = int(h)
        if k == h and 0 <= k < table.size:
            out[i] = table[k] + offset
        elif order == 1:
            out[i] = log_gamma_ratio_slope(h, r) + offset
        else:
            out[i] = log_gamma_ratio_curvature(h, r) + offset
