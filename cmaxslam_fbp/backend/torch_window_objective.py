"""The objective of a window on tensors, on any device."""

from __future__ import annotations

from typing import Any

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.control_turns import ControlTurns
from cmaxslam_fbp.backend.tensor_panoramic_warp import TensorPanoramicWarp
from cmaxslam_fbp.backend.window_objective import RegionContrast, View, curved_binning
from cmaxslam_fbp.fbp.torch_module import find_device, to_host, torch
from cmaxslam_fbp.trajectory.spline import RotationSpline


class TorchWindowObjective:
    """`f(delta) = score(B (I_L(delta) + alpha I_G)) - prior`; see `WindowObjective` for the mathematics.

    Events and images are float32 on the device; what the few hundred rotations of the window need is NumPy's.
    The adjoint of the frame comes from autograd.

    Parameters
    ----------
    turns, view, contrast : as in `WindowObjective`; the binning has the torch backend
    device : "cpu", "cuda", ...
    """

    def __init__(self, turns: ControlTurns, view: View, contrast: RegionContrast, device: str) -> None:
        place = find_device(device)
        self._turns, self._warp, self._region = turns, view.warp, view.region
        self._tensors = TensorPanoramicWarp(view.warp, place)
        self._map = torch.as_tensor(view.map_image, device=place)
        self._binning, self._blur, self._score = contrast.binning, contrast.blur, contrast.score
        self.evaluations = 0
        self.hessians = 0

    def window_image(self, delta: FloatArray) -> SingleArray:
        """Return `I_L` (rows, columns)."""
        _, points = self._project(self._turns.spline_at(delta))
        return to_host(self._region.image_of(self._binning(points)))

    def value(self, delta: FloatArray) -> float:
        """Return the score."""
        self.evaluations += 1
        _, points = self._project(self._turns.spline_at(delta))
        return float(to_host(self._score_of_frame(self._binning(points)))) - self._turns.cost(delta)

    def value_and_gradient(self, delta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its gradient (3 M,), synthesized by functional backpropagation."""
        self.evaluations += 1
        spline = self._turns.spline_at(delta)
        directions, points = self._project(spline)
        score, frame_bar = self._adjoint_frame(points)
        points_bar, _ = self._binning.vjp(points, None, frame_bar)
        by_edge = self._tensors.pullback(directions, points_bar)
        gradient = self._turns.gradient(delta, spline, self._warp.edges_ns, by_edge)
        return score - self._turns.cost(delta), gradient

    def hessian(self, delta: FloatArray) -> FloatArray:
        """Return a model (3 M, 3 M) of the Hessian; see `WindowObjective.hessian`."""
        self.hessians += 1
        spline = self._turns.spline_at(delta)
        directions, points = self._project(spline)
        _, frame_bar = self._adjoint_frame(points)
        curvatures = curved_binning(self._binning).curvatures(points, None, frame_bar)
        by_edge = self._tensors.pullback_curvature(directions, curvatures)
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
