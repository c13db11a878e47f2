"""Photometric refinement: control rotations and gradient map, adjusted together to what pairs of events say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.ndimage import gaussian_filter
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.intensity import photometric_kernels as kernels
from cmaxslam_fbp.intensity.event_pairs import EventPairs
from cmaxslam_fbp.intensity.joint_equations import JointEquations
from cmaxslam_fbp.trajectory.spline import RotationSpline

_SHORTEST_PX, _LONGEST_PX = 0.06, 2.0  # of the sensor, between the two directions of a pair that counts
_CHUNK = 50_000  # pairs whose derivatives are made at a time
_SLOPE_SIGMA_PX = 1.0  # of the map, over which the gradient's own slope is taken
_PRIOR_PX2 = 0.1  # by which a gradient of zero counts, as a sum of squared lengths of pairs
_LEAST_COSINE = 0.2  # of the latitude: nearer to a pole a pixel is no square by far
_DRAWINGS = 4  # of the first map, each with the slope and the weights of the last
_MOST_STEPS, _LEAST_GAIN = 8, 1e-3
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING, _DAMPING_FACTOR = 1e-2, 1e-6, 1e3, 5.0


@dataclass(frozen=True, eq=False)
class PairComparison:
    """What pairs say about a motion and a map: see `photometric_kernels.compare_pairs`.

    Attributes
    ----------
    pixel : (N,) int64
        Of the map.
    moved : (N, 2) float64
        Column and row from the first direction to the second.
    residual : (N,) float64
        In thresholds.
    jacobian : (N, 3 K) sparse float64, or None
        Derivatives of the residuals by turns of the control rotations, on the left.
    """

    pixel: IntArray
    moved: FloatArray
    residual: FloatArray
    jacobian: sparse.csr_array | None = None

    @property
    def error(self) -> float:
        """The sum of `log(1 + e^2)`, which bounds what one pair can do."""
        return float(np.log1p(self.residual**2).sum())

    def equations(self, gradient: FloatArray) -> tuple[IntArray, JointEquations]:
        """Return the pixels that take part, and the equations of the step from a map (H, W, 2) on them."""
        used, places = np.unique(self.pixel, return_inverse=True)
        weights = 1 / (1 + self.residual**2)
        before = gradient.reshape(-1, 2)[used]
        return used, JointEquations(self.jacobian, self.moved, places, weights, self.residual, before, _PRIOR_PX2)


class PhotometricRefinement:
    """Adjusts control rotations and a gradient map to pairs of events, by the method of Levenberg and Marquardt.

    It minimises `sum log(1 + e^2) + a sum |G|^2`, with the residual `e = G(p).d - s C` of a pair. The gradient is
    that of the pixel that is nearest to `p`, continued by its slope, which is taken anew from the map in each step.

    Parameters
    ----------
    pairs : of events, all within the time of the motion
    spline : the motion to start from
    projection : of the map
    camera : of the events

    Attributes
    ----------
    errors : list of float
        The root of the mean of `log(1 + e^2)`, in thresholds: at the start, and after each step.
    """

    def __init__(
        self,
        pairs: EventPairs,
        spline: RotationSpline,
        projection: Equirectangular,
        camera: Camera,
    ) -> None:
        self._pairs, self._projection, self._start, self._spline = pairs, projection, spline, spline
        self._gradient = np.zeros((projection.height, projection.width, 2))
        start = self.compare(spline, self._gradient, slope_of(self._gradient))
        cosines = np.cos((start.pixel // projection.width - projection.height / 2) / projection.focal_px)
        lengths = np.hypot(start.moved[:, 0] * cosines, start.moved[:, 1])
        shortest, longest = np.array([_SHORTEST_PX, _LONGEST_PX]) * projection.focal_px / max(camera.fx, camera.fy)
        good = (lengths >= shortest) & (lengths <= longest) & (cosines > _LEAST_COSINE)
        self._pairs = pairs[good]
        self.errors: list[float] = []

    @property
    def spline(self) -> RotationSpline:
        """The motion by now, in the world in which it starts as it did before: pairs do not tell how that is turned."""
        start, wanted = (Rotation.from_quat(one.quaternions_at(one.start_ns)) for one in (self._spline, self._start))
        turn = (wanted * start.inv()).as_rotvec()
        return self._spline.with_perturbation(0, np.repeat(turn[None], len(self._spline), axis=0))

    def run(self) -> Iterator[float]:
        """Take steps until they hardly lower the error; yields by how many degrees each has turned (RMS)."""
        if not len(self._pairs):
            return
        for _ in range(_DRAWINGS):
            now = self.compare(self._spline, self._gradient, slope_of(self._gradient))
            used, equations = now.equations(self._gradient)
            self._gradient.reshape(-1, 2)[used] += equations.map_changes(0.0)
        damping = _DAMPING
        for _ in range(_MOST_STEPS):
            slope = slope_of(self._gradient)
            now = self.compare(self._spline, self._gradient, slope, with_jacobian=True)
            self.errors = self.errors or [self._mean(now)]
            used, equations = now.equations(self._gradient)
            before = now.error + _PRIOR_PX2 * float((self._gradient**2).sum())
            while damping < _MOST_DAMPING:
                turns, changes = equations.solve(damping)
                spline = self._spline.with_perturbation(0, turns)
                gradient = self._gradient.copy()
                gradient.reshape(-1, 2)[used] += changes
                trial = self.compare(spline, gradient, slope)
                after = trial.error + _PRIOR_PX2 * float((gradient**2).sum())
                if after < before:
                    break
                damping *= _DAMPING_FACTOR
            else:
                return
            damping = max(damping / _DAMPING_FACTOR, _LEAST_DAMPING)
            self._spline, self._gradient = spline, gradient
            self.errors.append(self._mean(trial))
            yield float(np.degrees(np.sqrt(3 * np.mean(turns**2))))
            if before - after < _LEAST_GAIN * before:
                return

    def _mean(self, comparison: PairComparison) -> float:
        return float(np.sqrt(comparison.error / len(self._pairs)))

    def compare(
        self, spline: RotationSpline, gradient: FloatArray, slope: FloatArray, *, with_jacobian: bool = False
    ) -> PairComparison:
        """Compare the pairs with a motion and a gradient map (H, W, 2) of a slope (H, W, 2, 2)."""
        pairs, count, order = self._pairs, len(self._pairs), spline.order
        size = float(self._projection.width), float(self._projection.height), self._projection.focal_px
        pixel, moved, residual = np.empty(count, np.int64), np.empty((count, 2)), np.empty(count)
        first, before = (
            np.minimum((t_ns - spline.start_ns) // spline.step_ns, len(spline) - order)
            for t_ns in (pairs.t_ns, pairs.before_ns)
        )
        starts = np.concatenate([[0], np.cumsum(3 * (order + np.minimum(first - before, order)))])
        data, columns = (np.empty(starts[-1] if with_jacobian else 0, kind) for kind in (np.float64, np.int32))
        for begin in range(0, count, _CHUNK):
            part = slice(begin, begin + _CHUNK)
            t_ns, before_ns = pairs.t_ns[part], pairs.before_ns[part]
            pulls = np.empty((len(t_ns) if with_jacobian else 0, 2, 3))
            kernels.compare_pairs(
                pairs.bearings[part], pairs.change[part], spline.rotations_at(t_ns), spline.rotations_at(before_ns),
                *size, gradient, slope, pixel[part], moved[part], residual[part], pulls,
            )  # fmt: skip
            if with_jacobian:
                kernels.write_rows(
                    pulls, *spline.jacobians_at(before_ns), *spline.jacobians_at(t_ns),
                    starts[begin : begin + _CHUNK + 1], data, columns,
                )  # fmt: skip
        if not with_jacobian:
            return PairComparison(pixel, moved, residual)
        jacobian = sparse.csr_array((data, columns, starts), shape=(count, 3 * len(spline)))
        return PairComparison(pixel, moved, residual, jacobian)


def slope_of(gradient: FloatArray) -> FloatArray:
    """Return the derivatives (H, W, 2, 2) of a gradient map (H, W, 2) by column and row, a little smoothed."""
    slope = np.empty((*gradient.shape, 2))
    for component in range(2):
        for coordinate, orders in enumerate(((0, 1), (1, 0))):
            slope[..., component, coordinate] = gaussian_filter(
                gradient[..., component], _SLOPE_SIGMA_PX, orders, mode=("nearest", "wrap")
            )
    return slope
