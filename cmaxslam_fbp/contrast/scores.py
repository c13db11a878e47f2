"""Scores of an image of warped events (IWE): the sharper the image, the larger the score.

A score of arrays has a value, a gradient with respect to the image, and a Hessian `diag(c) + b 1 1^T`, given by its
diagonal part `c` (`curvature`) and the factor `b` of the part that comes from the image's mean (`mean_curvature`).
A score of a tensor (`of_tensor`) has a value; autograd knows the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast import score_kernels as kernels

if TYPE_CHECKING:
    from cmaxslam_fbp.fbp.torch_module import Tensor

Image = TypeVar("Image", npt.NDArray[np.float32], npt.NDArray[np.float64])
AnyImage = npt.NDArray[np.float32] | npt.NDArray[np.float64]

_MEAN_LATTICE = 2.0**-10  # squares of counts less a number on it are exact
_TABLE_SIZE = 1024  # counts of a histogram that are looked up; larger ones are computed


class Score(Protocol):
    """A score of images `h` of any shape: arrays, float32 or float64 and C-contiguous, or tensors.

    `out` is an array like the image that takes the result and is returned; without it a new one is made. Where
    the image is only the part of a larger one outside of which there are no events, `pixels` of the score
    is the number of pixels of the whole.
    """

    def value(self, image: AnyImage) -> float:
        """Return the score."""

    def gradient(self, image: Image, out: Image | None = None) -> Image:
        """Return the derivative of the score with respect to each pixel."""

    def curvature(self, image: Image, out: Image | None = None) -> Image:
        """Return the diagonal part `c` of the Hessian `diag(c) + b 1 1^T`."""

    def mean_curvature(self, image: AnyImage) -> float:
        """Return the factor `b` of the Hessian `diag(c) + b 1 1^T`."""

    def of_tensor(self, image: Tensor) -> Tensor:
        """Return the score of a tensor on any device, summed in float64, as a tensor that can be differentiated."""


@dataclass(frozen=True)
class Variance:
    """`1/N sum (h - mu)^2` with the mean `mu = 1/N sum h`, over all `N = pixels` of the image (default: its size).

    It is computed as `1/N sum (h - c)^2 - (mu - c)^2`, with `c` the mean on a lattice: sums over counts are then exact,
    and images with the same counts in other places score the same, to the last bit, whatever the order of the sum.
    """

    pixels: int | None = None

    def value(self, image: AnyImage) -> float:
        """Return the variance."""
        mean, count = self._mean(image), self.pixels or image.size
        centre = float(np.rint(mean / _MEAN_LATTICE)) * _MEAN_LATTICE
        squares = float(kernels.squares_about(_flat(image), centre)) + (count - image.size) * centre**2
        return squares / count - (mean - centre) ** 2

    def gradient(self, image: Image, out: Image | None = None) -> Image:
        """`2/N (h - mu)`."""
        out = np.empty_like(image) if out is None else out
        kernels.scale_about(_flat(image), self._mean(image), 2 / (self.pixels or image.size), _flat(out))
        return out

    def curvature(self, image: Image, out: Image | None = None) -> Image:
        """`2/N`."""
        out = np.empty_like(image) if out is None else out
        out.fill(2 / (self.pixels or image.size))
        return out

    def mean_curvature(self, image: AnyImage) -> float:
        """`-2/N^2`."""
        return -2 / (self.pixels or image.size) ** 2

    def of_tensor(self, image: Tensor) -> Tensor:
        """Return the variance of a tensor."""
        h, count = image.double(), self.pixels or image.numel()
        mean = h.sum() / count
        centre = (mean / _MEAN_LATTICE).round().detach() * _MEAN_LATTICE
        squares = ((h - centre) ** 2).sum() + (count - h.numel()) * centre**2
        return squares / count - (mean - centre) ** 2

    def _mean(self, image: AnyImage) -> float:
        return float(kernels.total(_flat(image))) / (self.pixels or image.size)


@dataclass(frozen=True)
class MeanSquare(Variance):
    """`1/N sum h^2` over all `N = pixels` of the image (default: its size): the variance about zero, not the mean."""

    def mean_curvature(self, image: AnyImage) -> float:
        """Zero: the mean plays no part."""
        return 0.0

    def of_tensor(self, image: Tensor) -> Tensor:
        """Return the mean square of a tensor."""
        return (image.double() ** 2).sum() / (self.pixels or image.numel())

    def _mean(self, image: AnyImage) -> float:
        return 0.0


@dataclass(frozen=True)
class NegativeBinomial:
    """Log-likelihood `sum log NB(h | r, p)` of counts `h >= 0`, in the form that non-integer `h` allow.

    `NB(h | r, p) = Gamma(h + r) / (Gamma(h + 1) Gamma(r)) (1 - p)^r p^h`, with the mean `r p / (1 - p)`: `p` belongs to
    the counts. This is the form of Gu et al. (ICCV 2021), with `p = 1 / (1 + beta)` for a Gamma(r, beta) prior of a
    pixel's rate; `scipy.stats.nbinom` calls it `nbinom(r, 1 - p)`. The paper does not say which of the two its
    (r, p) = (0.3, 0.8) means; this one lies near the maximum-likelihood fit of sharp images of the ECD's poster and
    boxes (r 0.19 to 0.25, p 0.73 to 0.77), the other does not. They differ by a multiple of `sum h`, which is
    constant as long as no event leaves the image.

    For `r < 1` each term is convex in `h`: the likelihood grows when events gather in fewer pixels.
    """

    r: float = 0.3
    p: float = 0.8
    pixels: int | None = None

    def __post_init__(self) -> None:
        if not (self.r > 0 and 0 < self.p < 1):
            raise ValueError(f"a negative binomial needs r > 0 and 0 < p < 1, not r={self.r}, p={self.p}")

    def value(self, image: AnyImage) -> float:
        """Return the log-likelihood, in nats; pixels outside the given part count as `h = 0`."""
        flat, table = _flat(image), _gamma_ratio_tables(self.r)[0]
        of_zero = self.r * math.log1p(-self.p) - math.lgamma(self.r)
        terms = float(kernels.sum_log_gamma_ratio(flat, self.r, table)) + float(kernels.total(flat)) * math.log(self.p)
        count = self.pixels or image.size
        return terms + (count - image.size) * math.lgamma(self.r) + count * of_zero

    def gradient(self, image: Image, out: Image | None = None) -> Image:
        """`psi(h + r) - psi(h + 1) + log p`, with the digamma function `psi`."""
        out = np.empty_like(image) if out is None else out
        table = _gamma_ratio_tables(self.r)[1]
        kernels.write_derivatives(_flat(image), self.r, table, 1, math.log(self.p), _flat(out))
        return out

    def curvature(self, image: Image, out: Image | None = None) -> Image:
        """`psi'(h + r) - psi'(h + 1)`: positive for `r < 1`."""
        out = np.empty_like(image) if out is None else out
        table = _gamma_ratio_tables(self.r)[2]
        kernels.write_derivatives(_flat(image), self.r, table, 2, 0.0, _flat(out))
        return out

    def mean_curvature(self, image: AnyImage) -> float:
        """Zero: pixels are independent."""
        return 0.0

    def of_tensor(self, image: Tensor) -> Tensor:
        """Return the log-likelihood of a tensor, in nats."""
        h, count = image.double(), self.pixels or image.numel()
        terms = (h + self.r).lgamma() - (h + 1).lgamma() + h * math.log(self.p) - math.lgamma(self.r)
        return terms.sum() + count * self.r * math.log1p(-self.p)


def hessian_product(score: Score, image: Image, direction: Image, out: Image | None = None) -> Image:
    """`(diag(c) + b 1 1^T) v`: the derivative of the score's gradient along the direction `v`, an image."""
    out = score.curvature(image, out)
    out *= direction
    mean_curvature = score.mean_curvature(image)
    if mean_curvature:
        out += out.dtype.type(mean_curvature * float(kernels.total(_flat(direction))))
    return out


@lru_cache(maxsize=16)
def _gamma_ratio_tables(r: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `f(k) = log Gamma(k + r) - log Gamma(k + 1)`, `f'(k)` and `f''(k)` for the counts `k` of the table."""
    functions = (kernels.log_gamma_ratio, kernels.log_gamma_ratio_slope, kernels.log_gamma_ratio_curvature)
    f, slope, curvature = (np.array([function(float(k), r) for k in range(_TABLE_SIZE)]) for function in functions)
    return f, slope, curvature


def _flat(image: AnyImage) -> AnyImage:
    """Return a flat view; a copy would lose what is written into it."""
    if not image.flags.c_contiguous:
        raise ValueError("an image must be C-contiguous; give a copy of the part that is meant")
    return image.reshape(-1)
