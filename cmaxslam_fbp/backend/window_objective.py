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
from cmaxslam_fbp.trajectory.spline import RotationSpline


@dataclass
class Workspace:
    """Arrays that grow to the largest window and serve all: nothing is allocated per evaluation."""

    points: SingleArray
    points_bar: SingleArray
    direction: SingleArray
    products: SingleArray

    @staticmethod
    def empty() -> Workspace:
        """Return a workspace without room."""
        return Workspace(*(np.empty((0, 2), np.float32) for _ in range(4)))

    def reserve(self, count: int) -> None:
        """Make room for `count` events."""
        if len(self.points) < count:
            for name in ("points", "points_bar", "direction", "products"):
                setattr(self, name, np.empty((count + count // 4, 2), np.float32))


class WindowObjective:
    """`f(delta) = score(B (I_L(delta) + alpha I_G)) - lambda/2 sum_k |delta_k - delta_{k-1}|^2`.

    `I_L` is the window's image and `I_G` the map, on a region. The second term holds on to the motion that the start
    has, where there are hardly any events to tell: see `ControlTurns`.

    `delta` (3 M,) turns the free control rotations on the left, `R_k <- exp(delta_k) R_k`. The gradient comes in
    reverse mode: one adjoint image, one gather per event, a sum per slot of time, and the Jacobians of the spline at
    the edges of the slots; its cost does not depend on the number of control rotations.

    Parameters
    ----------
    spline : the trajectory of the window at `delta = 0`
    first_free, held : index of the first free control rotation, and number of those at the end that are not free
    warp : the events
    region : the part of the panorama
    binning : on the region's frame
    map_image : (rows, columns) float32, `alpha I_G`
    blur, score : as in the equation
    prior : `lambda`
    workspace : room for the events
    """

    def __init__(
        self,
        spline: RotationSpline,
        first_free: int,
        warp: PanoramicWarp,
        region: Region,
        binning: Binning,
        map_image: SingleArray,
        blur: GaussianBlur[np.float32],
        score: Score,
        prior: float,
        workspace: Workspace,
        held: int = 0,
    ) -> None:
        workspace.reserve(len(warp))
        self._turns = ControlTurns(spline, first_free, prior, held)
        self._warp, self._region, self._binning = warp, region, binning
        self._map, self._blur, self._score = map_image, blur, score
        self._points, self._points_bar = workspace.points[: len(warp)], workspace.points_bar[: len(warp)]
        self._direction, self._products = workspace.direction[: len(warp)], workspace.products[: len(warp)]
        self._frame: SingleArray = np.empty(region.frame_shape, np.float32)
        self._blurred: SingleArray = np.empty(region.shape, np.float32)
        self._bar: SingleArray = np.empty(region.shape, np.float32)
        self.evaluations = 0
        self.hessians = 0

    @property
    def parameter_count(self) -> int:
        """The length of `delta`."""
        return self._turns.parameter_count

    def spline_at(self, delta: FloatArray) -> RotationSpline:
        """Return the trajectory of a `delta`."""
        return self._turns.spline_at(delta)

    def window_image(self, delta: FloatArray) -> SingleArray:
        """Return `I_L` (rows, columns)."""
        self._warp.points(self._warp.rotations(self.spline_at(delta)), self._region, self._points)
        return self._region.image_of(self._binning(self._points, out=self._frame)).copy()

    def value(self, delta: FloatArray) -> float:
        """Return the score."""
        self.evaluations += 1
        self._render(self._warp.rotations(self.spline_at(delta)))
        return self._score.value(self._blurred) - self._turns.price(delta)

    def value_and_gradient(self, delta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient (3 M,), synthesized by functional backpropagation."""
        self.evaluations += 1
        spline = self.spline_at(delta)
        rotations = self._warp.rotations(spline)
        self._render(rotations)
        value = self._score.value(self._blurred) - self._turns.price(delta)
        self._binning.vjp(self._points, None, self._adjoint_frame(), out=(self._points_bar, None))
        by_edge = self._warp.pullback(rotations, self._points_bar)
        return value, self._turns.gradient(delta, spline, self._warp.edges_ns, by_edge)

    def hessian(self, delta: FloatArray) -> FloatArray:
        """Return a model (3 M, 3 M) of the Hessian: what comes from the events' own second derivatives and the prior.

        It is negative about a maximum, and larger than the whole: what the moving events do to the image that they are
        compared with is left out. It belongs to further turns on the left, `exp(d) exp(delta_k) R_k`, which are the
        changes of `delta` where it is zero.
        """
        self.hessians += 1
        spline = self.spline_at(delta)
        rotations = self._warp.rotations(spline)
        self._render(rotations)
        frame_bar = self._adjoint_frame()
        curved = curved_binning(self._binning)
        for axis, out in enumerate((self._products, self._points_bar)):
            self._direction[:, axis] = 1
            self._direction[:, 1 - axis] = 0
            curved.hvp(self._points, None, frame_bar, self._direction, out=out)
        by_edge = self._warp.pullback_curvature(rotations, self._products, self._points_bar)
        return self._turns.hessian(spline, self._warp.edges_ns, by_edge)

    def _render(self, rotations: SingleArray) -> None:
        """Write the blurred image of window and map."""
        self._warp.points(rotations, self._region, self._points)
        image = self._region.image_of(self._binning(self._points, out=self._frame))
        np.add(image, self._map, out=self._blurred)
        self._blur.forward(self._blurred, out=self._blurred)

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
