"""The contrast of all events of a recording, as a function of the hand's motion and of the scene's distances."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.hand_motion import HandMotion, HandState, Priors, second_difference_transposed
from cmaxslam_fbp.backend.parallax_warp import ParallaxWarp
from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.backend.scene_distances import SceneDistances, as_single
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

_MARGIN_RAD = 0.08  # by which events may move


class HandObjective:
    """`f(theta) = -1/(2 H) sum (B (h + k))^2 + priors`, to be minimised, with `h` the image of all events weighted.

    `k` is the image of what was before, if anything. `H` is the mean height that an event sees at the start, so that an
    event counts about one.

    A camera that backs away draws all events together: the plain score would grow without bound, and the adjustment
    collapse. A shift by `rho c` changes areas on the sphere by about `1 - 2 rho c.d`; events are weighted by the root
    of that, `w = exp(-rho c.d)`, so that `sum h^2` does not change with it. But one short time whose events were
    weighted more would count more against the map of all others: a gain makes the mean weight of each slot the same,
    `w_i = a exp(-rho c.d_i)`. Only a contraction that all times share, which is the one that pays, changes the weights.

    The gradient comes in reverse mode through the binning: one adjoint image, one gather per event.

    Parameters
    ----------
    warp, motion, distances, projection, blur_sigma_px, priors, kernel : what `h` and the priors are made of
    known : (height, width) float32, the image `k` on the whole panorama, if any
    memory : the curvature by which what was before holds the coefficients of the distances where they start
    """

    def __init__(
        self,
        warp: ParallaxWarp,
        motion: HandMotion,
        distances: SceneDistances,
        projection: Equirectangular,
        blur_sigma_px: float,
        priors: Priors,
        kernel: str = "rect",
        known: SingleArray | None = None,
        memory: float = 0.0,
    ) -> None:
        self._warp, self._motion, self._distances, self._projection = warp, motion, distances, projection
        self._memory = memory
        self._distance_strength = priors.weight * len(warp) * 1e-3 / priors.distances**2
        self._points, self._points_bar = (np.empty((len(warp), 2), np.float32) for _ in range(2))
        self._weights, self._weights_bar = (np.empty(len(warp), np.float32) for _ in range(2))
        start = motion.state(np.zeros(motion.parameter_count))
        self._start_coefficients = start.coefficients
        poses, inverse = self._poses(start)
        warp.points(poses, inverse, projection, None, self._points, self._weights)
        margin_px = int(np.ceil(_MARGIN_RAD * projection.focal_px))
        self.region: Region = find_region(self._points, (projection.height, projection.width), margin_px)
        self._binning = Binning(self.region.frame_shape, kernel, "linear")
        self._blur = GaussianBlur(
            self.region.shape,
            blur_sigma_px,
            np.float32,
            rows="zero",
            columns="wrap" if self.region.padding else "zero",
        )
        self._frame: SingleArray = np.empty(self.region.frame_shape, np.float32)
        self._image: SingleArray = np.empty(self.region.shape, np.float32)
        self.evaluations = 0
        self._known: SingleArray = np.zeros(self.region.shape, np.float32)
        self._render(poses, inverse)
        own = self._image.copy()
        if known is not None:
            self._blur.forward(self.region.cut_out(known), out=self._known)
        self._height = float(np.vdot(own, own + self._known)) / float(own.sum(dtype=np.float64))

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value, and its gradient by `theta`."""
        self.evaluations += 1
        state = self._motion.state(theta)
        poses, inverse = self._poses(state)
        self._render(poses, inverse)
        value = -0.5 / self._height * float(np.vdot(self._image, self._image))
        np.multiply(self._image, np.float32(-1 / self._height), out=self._image)
        self._blur.adjoint(self._image, out=self._image)
        self._binning.vjp(
            self._points, self._weights, self.region.frame_of(self._image), out=(self._points_bar, self._weights_bar)
        )
        bars = self._warp.pullback(poses, inverse, self._projection, self._points_bar, self._weights_bar)
        gradient = self._motion.gradient(theta, state, self._warp.edges_ns, *bars)
        cost, slope = self._prior(theta, state)
        return value + cost, gradient + slope

    def _poses(self, state: HandState) -> tuple[SingleArray, SingleArray]:
        poses = self._warp.poses(state.rotations, state.positions)
        return poses, as_single(self._distances.table(state.coefficients))

    def _render(self, poses: SingleArray, inverse: SingleArray) -> None:
        """Write the blurred image."""
        self._warp.points(poses, inverse, self._projection, self.region, self._points, self._weights)
        image = self.region.image_of(self._binning(self._points, self._weights, out=self._frame))
        self._blur.forward(image, out=self._image)
        self._image += self._known

    def _prior(self, theta: FloatArray, state: HandState) -> tuple[float, FloatArray]:
        """Return the cost of second differences and of distances, with its gradient."""
        turns, motion, s = self._motion.split(theta)[0], self._motion, state.coefficients
        turned, moved = np.diff(turns, 2, axis=0), np.diff(state.positions.controls, 2, axis=0)
        by_turned, by_moved = motion.turn_strength[:, None] * turned, motion.position_strength[:, None] * moved
        cost = 0.5 * (np.vdot(turned, by_turned) + np.vdot(moved, by_moved) + self._distance_strength * (s @ s))
        controls = state.positions.controls
        cost += 0.5 * motion.reach_strength * np.vdot(controls, controls)
        by_controls = second_difference_transposed(by_moved) + motion.reach_strength * controls
        changed = s - self._start_coefficients
        cost += 0.5 * self._memory * float(changed @ changed)
        by_s = self._distance_strength * s + self._memory * changed
        return float(cost), motion.pull(theta, second_difference_transposed(by_turned), by_controls, by_s)
