"""Which kernel stands where: `k` in the forward pass, `kappa` (or what replaces it) in the derivatives."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import BinningError
from . import kernels
from .kernels import KernelFunction

KERNELS = ("rect", "linear", "gauss")
RECONSTRUCTIONS = ("linear", "cubic", "lanczos")
SURROGATES = ("ste", "sigmoid")


@dataclass(frozen=True)
class Kernel:
    """A kernel of finite support that is smooth between break points one bin apart.

    Attributes
    ----------
    name : str
        Unique; tables are kept by it.
    function : callable
        `function(x, order)`, in closed form.
    radius : float
        The support is [-radius, radius). The break points are a whole number of bins from its ends, so they
        lie on integers where the radius is one, and on half-integers where it is not.
    scale : float
        A constant that multiplies the D-dimensional product once.
    """

    name: str
    function: KernelFunction
    radius: float
    scale: float = 1.0

    @property
    def support(self) -> int:
        """The number of bins that one point touches along one axis."""
        return round(2 * self.radius)


_BINNING = {
    "rect": Kernel("rect", kernels.k_rect, 0.5),
    "linear": Kernel("linear", kernels.k_linear, 1.0),
    "gauss": Kernel("gauss", kernels.k_gauss, 1.5),
}
_KAPPA = {
    ("rect", "linear"): Kernel("rect*linear", kernels.kappa_rect_linear, 1.5),
    ("rect", "cubic"): Kernel("rect*cubic", kernels.kappa_rect_cubic, 2.5),
    ("rect", "lanczos"): Kernel("rect*lanczos", kernels.kappa_rect_lanczos, 2.5),
    ("linear", "linear"): Kernel("linear*linear", kernels.kappa_linear_linear, 2.0),
    ("linear", "cubic"): Kernel("linear*cubic", kernels.kappa_linear_cubic, 3.0),
    ("linear", "lanczos"): Kernel("linear*lanczos", kernels.kappa_linear_lanczos, 3.0),
    ("gauss", "linear"): Kernel("gauss*linear", kernels.kappa_gauss_linear, 2.5),
    ("gauss", "cubic"): Kernel("gauss*cubic", kernels.kappa_gauss_cubic, 3.5),
    ("gauss", "lanczos"): Kernel("gauss*lanczos", kernels.kappa_gauss_lanczos, 3.5),
}
_SURROGATES = {
    "ste": Kernel("ste", kernels.surrogate_ste, 1.0),
    "sigmoid": Kernel("sigmoid", kernels.surrogate_sigmoid, kernels.SIGMOID_CUT, 1 / kernels.SIGMOID_SLOPE),
}


def _choose(what: str, name: str, choices: tuple[str, ...]) -> None:
    if name not in choices:
        raise BinningError(f"unknown {what} {name!r}: use one of {', '.join(choices)}")


def binning_kernel(kernel: str) -> Kernel:
    """Return `k`, the kernel of the forward pass and of the derivative with respect to the weights."""
    _choose("kernel", kernel, KERNELS)
    return _BINNING[kernel]


def derivative_kernel(kernel: str, reconstruction: str | None, surrogate: str | None = None) -> Kernel:
    """Return what stands for `k` in every derivative with respect to the points.

    This is `kappa = l * k` for a reconstruction `l`, a heuristic surrogate where one is named (the
    reconstruction is then not used), and `k` itself, the plain derivative, for neither.
    """
    _choose("kernel", kernel, KERNELS)
    if surrogate is not None:
        _choose("surrogate", surrogate.lower(), SURROGATES)
        return _SURROGATES[surrogate.lower()]
    if reconstruction is not None:
        _choose("reconstruction", reconstruction, RECONSTRUCTIONS)
        return _KAPPA[kernel, reconstruction]
    if kernel == "rect":
        raise BinningError(
            "the rect kernel has no plain derivative: it is zero everywhere except at the bin edges, where it does "
            "not exist; choose reconstruction='linear' (functional backpropagation), or a surrogate"
        )
    return _BINNING[kernel]
