"""The objective of contrast maximisation: warp the events, bin them, blur the image, score it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score, hessian_product
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.kappa import derivative_kernel


class Warp(Protocol):
    """Where the events of a packet come to lie on a grid of bins, as a function of P parameters."""

    @property
    def parameter_count(self) -> int:
        """The number P of parameters."""

    def __len__(self) -> int:
        """Return the number N of events."""

    def points(self, theta: FloatArray, out: SingleArray) -> None:
        """Write the bin coordinates (N, 2), row before column."""

    def pullback(self, theta: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return `sum_i (dx_i/dtheta)^T xbar_i` (P,)."""

    def tangent(self, theta: FloatArray, axis: int, out: SingleArray) -> None:
        """Write `dx_i/dtheta_axis` (N, 2)."""

    def pullback_curvature(self, theta: FloatArray, points_bar: SingleArray, curvatures: SingleArray) -> FloatArray:
        """Return `sum_i (dx_i/dtheta)^T C_i (dx_i/dtheta) + xbar_i . d2x_i/dtheta2` (P, P).

        `curvatures` (N, 3) holds of each `C_i` row-row, row-column and column-column: see `Binning.curvatures`.
        """

    def pullback_outer(self, theta: FloatArray, points_bar: SingleArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with `g_i = (dx_i/dtheta)^T xbar_i`."""


class Objective(Protocol):
    """A score to maximise over P parameters."""

    evaluations: int
    hessians: int

    def value(self, theta: FloatArray) -> float:
        """Return the score."""

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient (P,)."""

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the second derivatives (P, P)."""


class ContrastObjective:
    """`S(theta) = s(B h(x(theta)))`: the score `s` of the blurred image `B h` of the warped events `x`.

    The value is that of the image itself. Its gradient is the synthesized one, in reverse mode: with the
    adjoint image `hbar = B^T s'(B h)`, gathered at every event with `kappa'` in place of `k'`,

        dS/dtheta = sum_i (dx_i/dtheta)^T sum_j hbar_j kappa'(x_i - j),

    so that its cost does not grow with the number of parameters. The Hessian is the derivative of that
    gradient, where the image's own derivative `hdot_a` is synthesized too:

        H_ab = <B hdot_a, s'' B hdot_b> + sum_i d/dtheta_b [(dx_i/dtheta_a)^T sum_j hbar_j kappa'(x_i - j)],

    `hbar` fixed in the second term.

    Parameters
    ----------
    shape : (rows, columns)
        Of the image.
    score : Score
        What to maximise.
    kernel, reconstruction, surrogate
        Of the binning, see `Binning`. Without a reconstruction the derivatives are the plain ones; rect has none:
        see `FiniteDifferences`. Where there are no second derivatives (see `Binning.highest_derivative`), the Hessian
        is that of the linear reconstruction.
    blur_sigma_px : float
        Standard deviation of the Gaussian blur in bins; zero for none.

    Notes
    -----
    `use` sets the events; the arrays of images and of events are kept over packets, so that an evaluation
    allocates nothing of their size. Not for two threads at once.

    Attributes
    ----------
    image : (rows, columns) float32
        That of the last evaluation, after the blur. It is overwritten by the next.
    has_derivatives : bool
        Whether there are any: not for rect binning without a reconstruction.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        score: Score,
        *,
        kernel: str = "rect",
        reconstruction: str | None = "linear",
        surrogate: str | None = None,
        blur_sigma_px: float = 0.0,
    ) -> None:
        highest = derivative_kernel(kernel, reconstruction, surrogate).highest_derivative
        self.has_derivatives = highest > 0
        # A binning without derivatives is refused, though its values exist: they are those of any reconstruction.
        self._binning = Binning(shape, kernel, reconstruction if highest else "linear", surrogate=surrogate)
        self._second: ContrastObjective | None = None
        if highest < 2:
            self._second = ContrastObjective(shape, score, kernel=kernel, blur_sigma_px=blur_sigma_px)
        self._score = score
        self._blur = GaussianBlur(shape, blur_sigma_px, np.float32)
        self.image: SingleArray = np.zeros(shape, np.float32)
        self._image_bar: SingleArray = np.zeros(shape, np.float32)
        self._derivatives: list[SingleArray] = []
        self._workspace: SingleArray = np.empty((0, 7), np.float32)  # points, their adjoints, their curvatures
        self._weights: SingleArray | None = None
        self._warp: Warp | None = None
        self._imaged: bytes | None = None  # the parameters that the image is of
        self._pulled: bytes | None = None  # those that `points_bar` belongs to
        self.evaluations = 0
        self.hessians = 0

    def use(self, warp: Warp, weights: SingleArray | None = None) -> None:
        """Set the events of the next evaluations, with one weight (N,) each (ones where there are none)."""
        count = len(warp)
        if count > len(self._workspace):
            self._workspace = np.empty((count + count // 4, 7), np.float32)
        flat, total = self._workspace.reshape(-1), len(self._workspace)
        self._points = flat[: 2 * count].reshape(count, 2)
        self._points_bar = flat[2 * total : 2 * (total + count)].reshape(count, 2)
        self._curvatures = flat[4 * total : 4 * total + 3 * count].reshape(count, 3)
        self._warp, self._weights = warp, weights
        self._imaged = self._pulled = None
        if self._second is not None:
            self._second.use(warp, weights)

    def value(self, theta: FloatArray) -> float:
        """Return the score `s(B h)`."""
        self.make_image(theta)
        self.evaluations += 1
        return self._score.value(self.image)

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its synthesized gradient (P,)."""
        value = self.value(theta)
        return value, self._current.pullback(theta, self._pull_back(theta))

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the synthesized second derivatives (P, P)."""
        self.hessians += 1
        if self._second is not None:
            return self._second.hessian(theta)
        warp = self._current
        self.make_image(theta)
        points_bar = self._pull_back(theta)
        self._binning.curvatures(self._points, self._weights, self._image_bar, out=self._curvatures)
        hessian = warp.pullback_curvature(theta, points_bar, self._curvatures)
        # From here on the adjoints' array is used for tangents, and the adjoint image for products.
        self._pulled = None
        while len(self._derivatives) < warp.parameter_count:
            self._derivatives.append(np.empty_like(self.image))
        for axis in range(warp.parameter_count):
            derivative = self._derivatives[axis]
            warp.tangent(theta, axis, points_bar)
            self._binning.jvp(self._points, self._weights, points_bar, out=derivative)
            self._blur.forward(derivative, derivative)
        for a in range(warp.parameter_count):
            product = hessian_product(self._score, self.image, self._derivatives[a], self._image_bar).reshape(-1)
            for b in range(a + 1):
                inner = float(np.dot(product, self._derivatives[b].reshape(-1)))
                hessian[a, b] += inner
                if a != b:
                    hessian[b, a] += inner
        return hessian

    def gradient_scatter(self, theta: FloatArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with the part `g_i` that each event has in the gradient.

        This is the covariance of the gradient if the events came independently of each other.
        """
        self.make_image(theta)
        return self._current.pullback_outer(theta, self._pull_back(theta))

    @property
    def _current(self) -> Warp:
        if self._warp is None:
            raise RuntimeError("the objective has no events yet: call use() first")
        return self._warp

    def make_image(self, theta: FloatArray) -> None:
        """Make the image `B h(x(theta))`, unless it is there already."""
        key = theta.tobytes()
        if key == self._imaged:
            return
        self._imaged = self._pulled = None
        self._current.points(theta, self._points)
        self._binning(self._points, self._weights, out=self.image)
        self._blur.forward(self.image, self.image)
        self._imaged = key

    def _pull_back(self, theta: FloatArray) -> SingleArray:
        """`xbar_i = sum_j hbar_j kappa'(x_i - j)` with `hbar = B^T s'(B h)`, unless it is there already."""
        key = theta.tobytes()
        if key != self._pulled:
            if not self.has_derivatives:
                raise ValueError("rect binning without a reconstruction has no gradient: use FiniteDifferences")
            self._score.gradient(self.image, self._image_bar)
            self._blur.adjoint(self._image_bar, self._image_bar)
            self._binning.vjp(
                self._points, self._weights, self._image_bar, with_weights=False, out=(self._points_bar, None)
            )
            self._pulled = key
        return self._points_bar
