"""The objective of a window on tensors, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.backend.tensor_panoramic_warp import TensorPanoramicWarp
from cmaxslam_fbp.backend.window_objective import curved_binning
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.torch_module import find_device, to_host, torch
from cmaxslam_fbp.trajectory.spline import RotationSpline


class TorchWindowObjective:
    """`f(delta) = score(B (I_L(delta) + alpha I_G)) - prior`; see `WindowObjective` for the mathematics.

    Events and images are float32 on the device; what the few hundred rotations of the window need is NumPy's.
    The adjoint of the frame comes from autograd.

    Parameters
    ----------
    spline, first_free, warp, region, blur, score, prior, held : as in `WindowObjective`
    binning : on the region's frame, with the torch backend
    map_image : (rows, columns) float32, `alpha I_G`
    device : "cpu", "cuda", ...
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
        device: str,
        held: int = 0,
    ) -> None:
        place = find_device(device)
        self._turns = ControlTurns(spline, first_free, prior, held)
        self._warp, self._tensors = warp, TensorPanoramicWarp(warp, place)
        self._region, self._binning = region, binning
        self._map, self._blur, self._score = torch.as_tensor(map_image, device=place), blur, score
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
        _, points = self._project(self.spline_at(delta))
        return to_host(self._region.image_of(self._binning(points)))

    def value(self, delta: FloatArray) -> float:
        """Return the score."""
        self.evaluations += 1
        _, points = self._project(self.spline_at(delta))
        return float(to_host(self._score_of_frame(self._binning(points)))) - self._turns.price(delta)

    def value_and_gradient(self, delta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient (3 M,), synthesized by functional backpropagation."""
        self.evaluations += 1
        spline = self.spline_at(delta)
        directions, points = self._project(spline)
        score, frame_bar = self._adjoint_frame(points)
        points_bar, _ = self._binning.vjp(points, None, frame_bar)
        by_edge = self._tensors.pullback(directions, points_bar)
        gradient = self._turns.gradient(delta, spline, self._warp.edges_ns, by_edge)
        return score - self._turns.price(delta), gradient

    def hessian(self, delta: FloatArray) -> FloatArray:
        """Return a model (3 M, 3 M) of the Hessian; see `WindowObjective.hessian`."""
        self.hessians += 1
        spline = self.spline_at(delta)
        directions, points = self._project(spline)
        _, frame_bar = self._adjoint_frame(points)
        curved = curved_binning(self._binning)
        axes = torch.eye(2, dtype=points.dtype, device=points.device)
        along = [curved.hvp(points, None, frame_bar, axis.expand_as(points)) for axis in axes]
        by_edge = self._tensors.pullback_curvature(directions, torch.stack(along, dim=-1))
        return self._turns.hessian(spline, self._warp.edges_ns, by_edge)

    def _project(self, spline: RotationSpline) -> tuple[Any, Any]:
        """Return the directions (3, N) of the events and their points (N, 2) in the frame."""
        directions = self._tensors.directions(self._warp.rotations(spline))
        return directions, self._tensors.points(directions, self._region)

    def _score_of_frame(self, frame: Any) -> Any:
        return self._score.of_tensor(self._blur.forward(self._region.image_of(frame) + self._map))

    def _adjoint_frame(self, points: Any) -> tuple[float, Any]:
        """Return the score and the cotangent of the frame."""
        frame = self._binning(points).requires_grad_()
        score = self._score_of_frame(frame)
        (frame_bar,) = torch.autograd.grad(score, frame)
        return float(to_host(score)), frame_bar
