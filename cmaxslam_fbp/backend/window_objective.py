"""The contrast of a window's events together with the map, as a function of the window's control rotations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score
from cmaxslam_fbp.fbp import Binning


@dataclass(frozen=True)
class View:
    """What a window sees.

    Attributes
    ----------
    warp : the events
    region : the part of the panorama that they touch
    known : (rows, columns) float32, `I_G`, the map there
    map_image : (rows, columns) float32, `alpha I_G`, as dense as the events
    """

    warp: PanoramicWarp
    region: Region
    known: SingleArray
    map_image: SingleArray


@dataclass(frozen=True)
class RegionContrast:
    """How an image on a region is made and scored: the binning of the region's frame, the blur `B` and the score."""

    binning: Binning
    blur: GaussianBlur[np.float32]
    score: Score


class WindowObjective:
    """`f(delta) = score(B (I_L(delta) + alpha I_G)) - lambda/2 sum_k |delta_k - delta_{k-1}|^2`.

    `I_L` is the window's image and `I_G` the map, on a region. The second term holds on to the motion that the start
    has, where there are hardly any events to tell: see `ControlTurns`.

    `delta` (3 M,) turns the free control rotations on the left, `R_k <- exp(delta_k) R_k`. The gradient comes in
    reverse mode: one adjoint image, one gather per event, a sum per slot of time, and the Jacobians of the spline at
    the edges of the slots; its cost does not depend on the number of control rotations.

    Parameters
    ----------
    turns : what may be turned, and what that costs
    view : the events and the map
    contrast : binning, blur and score of the region
    """

    def __init__(self, turns: ControlTurns, view: View, contrast: RegionContrast) -> None:
        self._turns, self._warp, self._region, self._map = turns, view.warp, view.region, view.map_image
        self._binning, self._blur, self._score = contrast.binning, contrast.blur, contrast.score
        # An evaluation allocates nothing of the size of the events or of the image.
        self._points, self._points_bar = (np.empty((len(view.warp), 2), np.float32) for _ in range(2))
        self._curvatures: SingleArray = np.empty((len(view.warp), 3), np.float32)
        self._frame: SingleArray = np.empty(view.region.frame_shape, np.float32)
        self._blurred, self._bar = (np.empty(view.region.shape, np.float32) for _ in range(2))
        self._rendered: bytes | None = None  # the turns that the image is of
        self.evaluations = 0
        self.hessians = 0

    def window_image(self, delta: FloatArray) -> SingleArray:
        """Return `I_L` (rows, columns)."""
        self._render(delta)
        return self._region.image_of(self._frame).copy()

    def value(self, delta: FloatArray) -> float:
        """Return the score."""
        self.evaluations += 1
        self._render(delta)
        return self._score.value(self._blurred) - self._turns.cost(delta)

    def value_and_gradient(self, delta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient (3 M,), synthesized by functional backpropagation."""
        value = self.value(delta)
        self._binning.vjp(self._points, None, self._adjoint_frame(), out=(self._points_bar, None))
        by_edge = self._warp.pullback(self._rotations, self._points_bar)
        return value, self._turns.gradient(delta, self._spline, self._warp.edges_ns, by_edge)

    def hessian(self, delta: FloatArray) -> FloatArray:
        """Return a model (3 M, 3 M) of the Hessian: what comes from the events' own second derivatives and the prior.

        It is negative about a maximum, and larger than the whole: what the moving events do to the image that they are
        compared with is left out. It belongs to further turns on the left, `exp(d) exp(delta_k) R_k`, which are the
        changes of `delta` where it is zero.
        """
        self.hessians += 1
        self._render(delta)
        curved_binning(self._binning).curvatures(self._points, None, self._adjoint_frame(), out=self._curvatures)
        by_edge = self._warp.pullback_curvature(self._rotations, self._curvatures)
        return self._turns.hessian(self._spline, self._warp.edges_ns, by_edge)

    def gradient_scatter(self, delta: FloatArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (3 M, 3 M) with the part `g_i` that each event has in the gradient for left turns.

        This is the covariance of the gradient if the events came independently of each other.
        """
        self._render(delta)
        self._binning.vjp(self._points, None, self._adjoint_frame(), out=(self._points_bar, None))
        np.multiply(self._points_bar[:, [0, 0, 1]], self._points_bar[:, [0, 1, 1]], out=self._curvatures)
        by_edge = self._warp.pullback_curvature(self._rotations, self._curvatures)
        return self._turns.hessian(self._spline, self._warp.edges_ns, by_edge, with_cost=False)

    def _render(self, delta: FloatArray) -> None:
        """Write the blurred image of window and map, unless it is there already."""
        if (key := delta.tobytes()) == self._rendered:
            return
        self._spline = self._turns.spline_at(delta)
        self._rotations = self._warp.rotations(self._spline)
        self._warp.points(self._rotations, self._region, self._points)
        image = self._region.image_of(self._binning(self._points, out=self._frame))
        np.add(image, self._map, out=self._blurred)
        self._blur.forward(self._blurred, out=self._blurred)
        self._rendered = key

    def _adjoint_frame(self) -> SingleArray:
        """Return the cotangent of the frame."""
        self._score.gradient(self._blurred, out=self._bar)
        self._blur.adjoint(self._bar, out=self._bar)
        return self._region.frame_of(self._bar)


def curved_binning(binning: Binning) -> Binning:
    """Return the binning, or one with a linear reconstruction where its own second derivatives vanish."""
    if binning.highest_derivative < 2:
        return Binning(binning.shape, binning.kernel, "linear", backend=binning.backend)
    return binning
