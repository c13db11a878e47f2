"""The contrast of all events of a recording, as a function of the camera's rotation and of its lens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.hand_motion import Priors, Whitening, control_times, second_difference_transposed
from cmaxslam_fbp.backend.region import Region, find_region
from cmaxslam_fbp.calibration.area_weights import AreaWeights
from cmaxslam_fbp.calibration.bearing_grid import BearingGrid, LensView
from cmaxslam_fbp.calibration.compensation import compensating_turns
from cmaxslam_fbp.calibration.lens_parameters import LensParameters
from cmaxslam_fbp.calibration.lens_warp import LensWarp
from cmaxslam_fbp.calibration.relief import Relief
from cmaxslam_fbp.contrast.blur import Boundary
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry import so3
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.spline import RotationSpline

_MARGIN_PX = 12
_NEARLY = 0.999
_LENS_SHARE = 0.1  # expected curvature of the score by a lens parameter, per event and square pixel that it moves
_SMALL_PX, _LEAST_MOVED, _TINY = 0.2, 0.01, 1e-300


@dataclass(frozen=True)
class LensState:
    """How a camera turned, and the values (P,) of the parameters of its lens."""

    rotations: RotationSpline
    values: FloatArray


class LensObjective:
    """`f(theta) = -S(h) / 2 + priors`, to be minimised; `theta` are whitened turns (3 K,) and lens changes.

    `h` is the map of all events, and `S` how much it stands out from its surroundings (see `Relief`), about twice a
    log-likelihood. Lenses are compared on equal terms. Too long a focal length shrinks all angles, and would be
    rewarded for a finer map: map pixels shrink with it, `p = s pi(R b)` with `s = f / f0`, `f^2 = fx fy`, about the
    map's middle. One map pixel stays as many pixels of the sensor (but for a map that goes all around: there the
    circle must close, which leaves no such choice). And events are weighted by a power of the area that their pixel
    covers on the map, so that the score does not change where a part of it is drawn apart (see `AreaWeights` and
    `_neutral_exponent`).

    Lens and motion are compensated (see `compensating_turns`): `delta_k = delta'_k + sum_j dphi_j D_jk`.

    Parameters
    ----------
    all_events : ordered by time, within the spline
    parameters : the free parameters of the lens
    start : the state at `theta = 0`
    px_per_px : pixels of the map per pixel of the sensor, at the image's centre
    blur_sigma_px : of the map
    """

    def __init__(
        self,
        all_events: Events,
        parameters: LensParameters,
        start: LensState,
        px_per_px: float,
        blur_sigma_px: float,
    ) -> None:
        priors = Priors()
        self._parameters, self._start = parameters, start
        camera = parameters.camera(start.values)
        self._size = camera.height, camera.width
        self._focal_px = float(np.sqrt(camera.fx * camera.fy))
        self._grid = BearingGrid(camera.width, camera.height)
        self._view = view = self._grid.view(parameters, start.values)
        width = 2 * round(np.pi * camera.fx * px_per_px)
        projection = Equirectangular(width, width // 2)
        seen = self._grid.expand(view.seen.astype(np.float64)) > _NEARLY
        events = all_events[seen[all_events.y, all_events.x]]
        spline = start.rotations
        self._warp = warp = LensWarp(events, self._bearings(view), projection, spline)
        self._weights: SingleArray = np.ones(len(events), np.float32)
        rotations = warp.rotations(spline)
        self._points = warp.points(rotations)
        self.region: Region = find_region(self._points, (projection.height, width), _MARGIN_PX)
        self._middle = (np.array(self.region.frame_shape, np.float32) - 1) / 2
        # Bilinear votes with their own derivative: with parameters by the hundred and ridges that are nearly flat,
        # value and gradient must agree to the last digits.
        self._binning = Binning(self.region.frame_shape, "linear", None)
        columns: Boundary = "wrap" if self.region.padding else "zero"
        self._relief = Relief(self.region.shape, blur_sigma_px, columns)
        self._frame: SingleArray = np.empty(self.region.frame_shape, np.float32)
        self._turns = 3 * len(spline)
        self._along = compensating_turns(view, spline, control_times(spline), warp.edges_ns)
        self._turn_strength = priors.strength(priors.turns, spline, control_times(spline))
        self._white_turns = Whitening(projection.focal_px**2 * warp.events_of_controls(spline), self._turn_strength)
        self._lens_strength = priors.weight / parameters.scales**2
        self.lens_whitening = self._expected_whitening(projection.focal_px)
        shares = {"focal": 1.0, "aspect": 0.5}
        self._scale_shares = np.array([shares.get(name, 0.0) for name in parameters.names])
        self.lens_count = len(parameters.names)
        self.parameter_count = self._turns + self.lens_count
        self._exponent = self._neutral_exponent(rotations)
        self._areas = AreaWeights(self._grid, warp, self.region.top, self._exponent)
        self._of_all = len(all_events)

    @property
    def contrast(self) -> float:
        """The score of the start per event, in maps of one scale: one without any structure, more where it is sharp."""
        return self._score_of(self._view, self._warp.rotations(self._start.rotations), 1.0) / self._of_all

    def sharpness(self, rows: int, columns: int) -> FloatArray:
        """Return what events of each part (rows, columns) of the image add to the contrast; NaN without any.

        Their mean, weighted by their numbers, is the contrast.
        """
        self._score_of(self._view, self._warp.rotations(self._start.rotations), 1.0)
        shares = self.region.frame_of(self._relief.shares())
        added = self._weights * self._binning.vjp(self._points, self._weights, shares)[1]
        height, width = self._size
        sums, counts = (
            np.add.reduceat(
                np.add.reduceat(self._warp.sum_at_pixels(values, self._size), np.arange(rows) * height // rows, axis=0),
                np.arange(columns) * width // columns,
                axis=1,
            )
            for values in (added, np.ones_like(added))
        )
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def map(self) -> SingleArray:
        """Return the map of the start, blurred."""
        self._score_of(self._view, self._warp.rotations(self._start.rotations), 1.0)
        return self._relief.map.copy()

    def step_of(self, direction: FloatArray, moved_px: float) -> float:
        """Return how far to go from `theta = 0` in a direction, so that events move on the map by so many pixels (RMS).

        Where they hardly move at all it ends at a hundred times the usual way.
        """
        usual = float(np.sqrt(_LENS_SHARE * len(self._weights)) / max(np.linalg.norm(direction), _TINY))
        ends = []
        for way in (-_SMALL_PX * usual, _SMALL_PX * usual):
            state = self.state(way * direction)
            view = self._grid.view(self._parameters, state.values)
            self._score_of(view, self._warp.rotations(state.rotations), self._scale(state))
            ends.append(self._points.copy())
        moved = float(np.sqrt(np.square(ends[1] - ends[0]).sum(axis=1).mean())) / (2 * _SMALL_PX)
        return moved_px * usual / max(moved, _LEAST_MOVED)

    def state(self, theta: FloatArray) -> LensState:
        """Return motion and lens of a `theta`."""
        turns, changes = self._split(theta)
        deltas = turns + np.einsum("j,jki->ki", changes, self._along)
        return LensState(self._start.rotations.with_perturbation(0, deltas), self._start.values + changes)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value, and its gradient by `theta`."""
        turns, changes = self._split(theta)
        state = self.state(theta)
        view = self._grid.view(self._parameters, state.values) if self._parameters.allow(state.values) else None
        if view is None or (self._view.seen & ~view.seen).any():  # a lens that does not see where events are
            return 0.0, np.zeros(len(theta))
        scale = self._scale(state)
        rotations = self._warp.rotations(state.rotations)
        value = -0.5 * self._score_of(view, rotations, scale)
        image_bar = self._relief.gradient()
        image_bar *= np.float32(-0.5)
        bars, weights_bar = self._binning.vjp(self._points, self._weights, self.region.frame_of(image_bar))
        by_log_scale = float(
            np.vdot(bars, self._points - self._middle) + 2 * self._exponent * np.vdot(weights_bar, self._weights)
        )
        bars *= np.float32(scale)
        by_areas, rows_bar = self._areas.pullback(weights_bar, self._size)
        bars[:, 0] += rows_bar
        by_delta = self._by_controls(state.rotations, turns, changes, self._warp.pullback(rotations, bars))
        by_rays = self._grid.gather(self._warp.pullback_bearings(rotations, bars, self._size))
        by_lens = np.einsum("nmi,nmij->j", by_rays, view.jacobian) + np.einsum("ki,jki->j", by_delta, self._along)
        by_lens += by_areas
        if not self.region.padding:
            by_lens += by_log_scale * self._scale_shares
        differences = np.diff(turns, 2, axis=0)
        by_differences = self._turn_strength[:, None] * differences
        off = state.values - self._parameters.priors
        cost = 0.5 * (np.vdot(differences, by_differences) + self._lens_strength @ off**2)
        by_turns = by_delta + second_difference_transposed(by_differences)
        by_lens += self._lens_strength * off
        gradient = np.concatenate([self._white_turns.pull(by_turns), self.lens_whitening.T @ by_lens])
        return value + float(cost), gradient

    def _scale(self, state: LensState) -> float:
        """Return `s = f / f0`, with `f^2 = fx fy`."""
        if self.region.padding:
            return 1.0
        return float(np.exp(self._scale_shares @ (state.values - self._start.values)))

    def _neutral_exponent(self, rotations: SingleArray) -> float:
        """Return `e`: where everything is drawn apart by `s`, and weights grow as `s^(2 e)`, the score stays the same.

        That is `-(dS / d log s) / (2 dS / d log w)`.
        """
        self._warp.points(rotations, self.region, out=self._points)
        self._score()
        image_bar = self.region.frame_of(self._relief.gradient())
        bars, weights_bar = self._binning.vjp(self._points, self._weights, image_bar)
        slope, by_weight = np.vdot(bars, self._points - self._middle), np.vdot(weights_bar, self._weights)
        return float(np.clip(-slope / (2 * by_weight), -0.5, 0.5))

    def _bearings(self, view: LensView) -> SingleArray:
        return np.ascontiguousarray(self._grid.expand(view.rays), np.float32)

    def _split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `delta'` (K, 3) and the changes (P,) of the lens parameters."""
        return self._white_turns.expand(theta[: self._turns]), self.lens_whitening @ theta[self._turns :]

    def _score_of(self, view: LensView, rotations: SingleArray, scale: float) -> float:
        """Return `S` of the map of all events through a lens, along a motion, with map pixels of a scale."""
        self._warp.see(self._bearings(view))
        self._warp.points(rotations, self.region, out=self._points)
        self._areas.weigh(view, self._points, scale * self._focal_px, out=self._weights)
        if scale != 1:
            self._points -= self._middle
            self._points *= np.float32(scale)
            self._points += self._middle
        return self._score()

    def _score(self) -> float:
        return self._relief.value(self.region.image_of(self._binning(self._points, self._weights, out=self._frame)))

    def _by_controls(
        self, rotations: RotationSpline, turns: FloatArray, changes: FloatArray, by_turn: FloatArray
    ) -> FloatArray:
        """Return the gradient (K, 3) by `delta` from that by left turns (S + 1, 3) at the slots' edges."""
        first, jacobians = rotations.jacobians_at(self._warp.edges_ns)
        turned = np.zeros((len(rotations), 3))
        for j in range(jacobians.shape[1]):
            np.add.at(turned, first + j, np.einsum("tji,tj->ti", jacobians[:, j], by_turn))
        deltas = turns + np.einsum("j,jki->ki", changes, self._along)
        return np.asarray(np.einsum("kji,kj->ki", so3.left_jacobian(deltas), turned))

    def _expected_whitening(self, focal_px: float) -> FloatArray:
        """Return `L^-T` (P, P), with `L L^T` the expected curvature by the lens parameters."""
        fields = self._view.jacobian[self._view.seen] * focal_px  # (N, 3, P)
        gram = np.einsum("nij,nik->jk", fields, fields) / len(fields)
        expected = _LENS_SHARE * len(self._weights) * gram + np.diag(self._lens_strength)
        return np.asarray(solve_triangular(cholesky(expected), np.eye(len(expected))))
