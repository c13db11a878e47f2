"""Binning of points, with derivatives by functional backpropagation: the one class that users need."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from cmaxslam_fbp.choices import KERNELS, Choices
from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp.kappa import derivative_kernel

# Looked up when one is asked for, so that importing the package loads neither SciPy nor Numba nor Torch.
_BACKENDS = Choices(
    "backend of a binning",
    {
        "numba": "cmaxslam_fbp.fbp.numba_backend:NumbaBackend",
        "torch": "cmaxslam_fbp.fbp.torch_backend:TorchBackend",
        "reference": "cmaxslam_fbp.fbp.reference:ReferenceBackend",
    },
)


class Binning:
    """Counts weighted points in the bins of a grid, and differentiates through it.

    The frame is `h_j = sum_i w_i prod_d k(x_id - j_d)`: bin `j` is centred at coordinate `j`, and bins are one wide.
    In every derivative with respect to the points, `k` is replaced by `kappa = l * k`, the convolution
    with the reconstruction kernel `l`. The frame itself never depends on `l`, and its derivative with respect
    to the weights, in which it is linear, is exact.

    Parameters
    ----------
    shape : tuple of int
        The number of bins along each axis: 1 to 3 of them, any number with the torch and reference backends.
    kernel : str
        `k`, one of `choices.KERNELS`: "rect", "linear", "gauss". With rect,
        bin `j` takes `[j - 1/2, j + 1/2)`: every point to exactly one bin.
    reconstruction : str, optional
        `l`, one of `choices.RECONSTRUCTIONS`: "linear", "cubic", "lanczos". None
        is the plain derivative of `k`, which rect does not have.
    surrogate : str, optional
        A heuristic to compare with, one of `choices.SURROGATES`: "ste", "sigmoid"; in
        place of a reconstruction (which is then not used).
    backend : {"numba", "torch", "reference"}
        Compiled loops on NumPy arrays; tensors on any device, with autograd; or the slow oracle.
    threads : int
        How many threads the numba backend uses. The result has the same bits for any number.

    Attributes
    ----------
    highest_derivative : int
        Of the derivatives with respect to the points, the highest order that is not zero almost everywhere: 2, or 1
        for "ste" and the plain linear kernel, of whose second derivatives only the mixed ones are left.

    Notes
    -----
    Points may come in any order. Bins beyond the grid do not exist: what falls there is lost, nothing wraps.
    Points with a NaN or infinite coordinate are ignored, their derivatives are zero, and `count_ignored` counts them.
    Float32 points give a float32 result computed in float32, all others float64 (the oracle: always float64).
    At break points of a kernel, derivatives are those from the right.

    With the numba backend, arrays given as `out` (C-contiguous, of the result's type) receive the results, so that
    a hot loop allocates nothing of their size; arguments that are not contiguous are copied.

    Examples
    --------
    >>> import numpy as np
    >>> binning = Binning(shape=(3, 4), backend="reference")
    >>> points = np.array([[1.2, 2.4], [1.4, 2.0]])
    >>> binning(points)[1]
    array([0., 0., 2., 0.])
    >>> points_bar, _ = binning.vjp(points, None, np.arange(12.0).reshape(3, 4))
    >>> points_bar
    array([[4., 1.],
           [4., 1.]])
    """

    def __init__(
        self,
        shape: Iterable[int],
        kernel: str = "rect",
        reconstruction: str | None = "linear",
        *,
        surrogate: str | None = None,
        backend: str = "numba",
        threads: int = 1,
    ) -> None:
        self.shape = tuple(operator.index(n) for n in shape)
        if not self.shape or min(self.shape) < 1:
            raise BinningError(f"shape must be one or more positive numbers of bins, not {self.shape}")
        if threads < 1:
            raise BinningError(f"threads must be 1 or more, not {threads}")
        if threads > 1 and _BACKENDS.check(backend) != "numba":
            raise BinningError("threads are for the numba backend: torch has its own setting, torch.set_num_threads")
        self.kernel = kernel
        self.reconstruction = reconstruction if surrogate is None else None
        self.surrogate = surrogate
        self.backend = backend
        self.threads = threads
        kappa = derivative_kernel(kernel, self.reconstruction, surrogate)
        self.highest_derivative = kappa.highest_derivative
        if self.highest_derivative == 0:
            raise BinningError(
                f"the {kernel} kernel has no plain derivative: it is zero everywhere except at the bin edges, where it "
                "does not exist; choose reconstruction='linear' (functional backpropagation), or a surrogate"
            )
        options = {"threads": threads} if backend == "numba" else {}
        self._backend = _BACKENDS[backend](self.shape, KERNELS[kernel], kappa, **options)

    def __call__(self, points: Any, weights: Any = None, *, offsets: Any = None, out: Any = None) -> Any:
        """`h_j = sum_i w_i prod_d k(x_id - j_d)`: bin the points.

        Parameters
        ----------
        points : (N, D)
            Coordinates in bins, in the order of `shape`. Tensors may have more axes in front: (..., N, D).
        weights : (N,), optional
            One per point; ones where there are none. Points that only fill up a batch have the weight zero.
        offsets : (B + 1,), optional
            For tensors, of samples of unequal length that lie behind each other in `points`: sample `b` is
            `points[offsets[b] : offsets[b + 1]]`, the first offset is 0 and the last N.
        out : array of `shape`, optional
            Where to write the frame.

        Returns
        -------
        array of `shape`
            The frame; (..., *shape) for tensors, (B, *shape) with offsets.
        """
        if offsets is not None and self.backend != "torch":
            raise BinningError("offsets are for the torch backend: bin arrays sample by sample")
        x, w = self._given(points, weights)
        if offsets is not None:
            return self._backend.scatter_samples(x, w, offsets)
        return self._backend.scatter(0, x, w, None, None if out is None else self._backend.zeros(x, out))

    def jvp(self, points: Any, weights: Any, points_dot: Any, weights_dot: Any = None, *, out: Any = None) -> Any:
        """`hdot_j = sum_i w_i sum_d xdot_id d/dx_id prod_e kappa(x_ie - j_e) + sum_i wdot_i prod_d k(x_id - j_d)`.

        The change of the frame, `shape`, along tangents of the points (N, D) and of the weights (N,). Either may be
        None, for zero.
        """
        x, w = self._given(points, weights)
        frame_dot = self._backend.zeros(x, out)
        if points_dot is not None:
            x_dot = self._backend.like(points_dot, x, x.shape, "points_dot")
            frame_dot = self._backend.scatter(1, x, w, x_dot, frame_dot)
        if weights_dot is not None:
            w_dot = self._backend.like(weights_dot, x, x.shape[:-1], "weights_dot")
            frame_dot = self._backend.scatter(0, x, w_dot, None, frame_dot)
        return frame_dot

    def vjp(
        self, points: Any, weights: Any, frame_bar: Any, *, with_weights: bool | None = None, out: Any = None
    ) -> tuple[Any, Any]:
        """`xbar_id = w_i sum_j hbar_j d/dx_id prod_e kappa(x_ie - j_e)`; `wbar_i = sum_j hbar_j prod_d k(x_id - j_d)`.

        A cotangent of the frame, `shape`, pulled back to the points (N, D) and to the weights (N,). The second value is
        None where `with_weights` is False; by default it is there if the weights are. `out` is a pair of arrays, either
        of which may be None.
        """
        x, w = self._given(points, weights)
        h_bar = self._frame(frame_bar, x)
        out_points, out_weights = (None, None) if out is None else out
        points_bar = self._backend.gather(1, x, w, None, h_bar, out_points)
        if not (weights is not None if with_weights is None else with_weights):
            return points_bar, None
        return points_bar, self._backend.gather(0, x, None, None, h_bar, out_weights)

    def hvp(self, points: Any, weights: Any, frame_bar: Any, points_dot: Any, *, out: Any = None) -> Any:
        """`w_i sum_j hbar_j sum_e xdot_ie d^2/dx_id dx_ie prod_f kappa(x_if - j_f)`.

        The derivative (N, D) of the first value of `vjp` along a tangent of the points, `frame_bar` fixed. See
        `highest_derivative` for those that have no second derivative along one axis.
        """
        x, w = self._given(points, weights)
        x_dot = self._backend.like(points_dot, x, x.shape, "points_dot")
        return self._backend.gather(2, x, w, x_dot, self._frame(frame_bar, x), out)

    def curvatures(self, points: Any, weights: Any, frame_bar: Any, *, out: Any = None) -> Any:
        """Return the second derivatives `C_i = w_i sum_j hbar_j d^2/dx_i^2 prod_d kappa(x_id - j_d)` of every point.

        Each is symmetric; the result (N, D (D + 1) / 2) holds its upper triangle row by row: in the plane `C_00`,
        `C_01` and `C_11`. `hvp` is `C_i` times a tangent.
        """
        x, w = self._given(points, weights)
        return self._backend.gather(2, x, w, None, self._frame(frame_bar, x), out)

    def count_ignored(self, points: Any) -> int:
        """Return how many of the points (..., N, D) have a NaN or infinite coordinate, and are therefore ignored."""
        return self._backend.count_ignored(points)

    def _given(self, points: Any, weights: Any) -> tuple[Any, Any]:
        """Return the points, and the weights or None, as the backend takes them."""
        x = self._backend.points(points)
        return x, None if weights is None else self._backend.like(weights, x, x.shape[:-1], "weights")

    def _frame(self, frame_bar: Any, x: Any) -> Any:
        return self._backend.like(frame_bar, x, (*x.shape[:-2], *self.shape), "frame_bar")

    def __repr__(self) -> str:
        chosen = f"surrogate={self.surrogate!r}" if self.surrogate else f"reconstruction={self.reconstruction!r}"
        return f"Binning(shape={self.shape}, kernel={self.kernel!r}, {chosen}, backend={self.backend!r})"
