"""The objective on tensors, on any device: values as they are, derivatives by autograd through the binning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.contrast.blur import GaussianBlur
from cmaxslam_fbp.contrast.scores import Score
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.kappa import derivative_kernel
from cmaxslam_fbp.fbp.torch_module import Tensor, find_device, to_host, torch


class TensorWarp(Protocol):
    """A warp that can be evaluated on tensors."""

    @property
    def parameter_count(self) -> int:
        """The number P of parameters."""

    def __len__(self) -> int:
        """Return the number N of events."""

    def arrays(self) -> Sequence[SingleArray]:
        """Return the arrays (N,) that `tensor_points` needs, as tensors on the device."""

    def tensor_points(self, theta: Tensor, *arrays: Tensor) -> Tensor:
        """Return the bin coordinates (N, 2) for parameters (P, 1), or (P, N) for each event; row before column."""


class TorchObjective:
    """`S(theta) = s(B h(x(theta)))` on tensors; see `ContrastObjective` for the mathematics.

    Events and images are float32 on the device, scores float64, as in the compiled objective; parameters and results
    are float64 NumPy arrays. The Hessian is the derivative of the synthesized gradient by autograd, row by row.

    Parameters
    ----------
    shape, score, kernel, reconstruction, surrogate, blur_sigma_px : as in `ContrastObjective`
    device : str
        Where the tensors live: "cpu", "cuda", ...
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
        device: str = "cpu",
    ) -> None:
        self._device = find_device(device)
        highest = derivative_kernel(kernel, reconstruction, surrogate).highest_derivative
        self._binning = Binning(
            shape, kernel, reconstruction if highest else "linear", surrogate=surrogate, backend="torch"
        )
        self.has_derivatives = highest > 0
        self._score, self._blur = score, GaussianBlur(shape, blur_sigma_px, np.float32)
        self._second: TorchObjective | None = None
        if highest < 2:
            self._second = TorchObjective(shape, score, kernel=kernel, blur_sigma_px=blur_sigma_px, device=device)
        self._warp: TensorWarp | None = None
        self._image = torch.zeros(shape, device=self._device)
        self.evaluations = 0
        self.hessians = 0

    @property
    def image(self) -> SingleArray:
        """The image of the last evaluation, after the blur."""
        return to_host(self._image)

    def use(self, warp: TensorWarp, weights: SingleArray | None = None) -> None:
        """Set the events of the next evaluations, with one weight (N,) each (ones where there are none)."""
        self._warp = warp
        self._arrays = tuple(torch.as_tensor(array, device=self._device) for array in warp.arrays())
        self._weights = None if weights is None else torch.as_tensor(weights, device=self._device)
        if self._second is not None:
            self._second.use(warp, weights)

    def make_image(self, theta: FloatArray) -> None:
        """Make the image `B h(x(theta))`."""
        with torch.no_grad():
            self._score_at(self._parameters(theta))

    def value(self, theta: FloatArray) -> float:
        """Return the score `s(B h)`."""
        self.evaluations += 1
        with torch.no_grad():
            return float(to_host(self._score_at(self._parameters(theta))))

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its synthesized gradient (P,)."""
        self.evaluations += 1
        parameters = self._parameters(theta).requires_grad_()
        value = self._score_at(parameters)
        (gradient,) = torch.autograd.grad(value, parameters)
        result = to_host(torch.cat([value[None], gradient[:, 0].double()]))  # both at once: each copy waits
        return float(result[0]), result[1:]

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the synthesized second derivatives (P, P)."""
        self.hessians += 1
        if self._second is not None:
            return self._second.hessian(theta)
        parameters = self._parameters(theta).requires_grad_()
        (gradient,) = torch.autograd.grad(self._score_at(parameters), parameters, create_graph=True)
        rows = [torch.autograd.grad(entry, parameters, retain_graph=True)[0][:, 0] for entry in gradient[:, 0]]
        hessian = torch.stack(rows).double()
        return to_host(0.5 * (hessian + hessian.T))

    def gradient_scatter(self, theta: FloatArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with the part `g_i` that each event has in the gradient."""
        count = len(self._arrays[0])
        each = self._parameters(theta).repeat(1, count).requires_grad_()  # the same parameters for every event
        (parts,) = torch.autograd.grad(self._score_at(each), each)
        parts = parts.double()
        return to_host(parts @ parts.T)

    def _score_at(self, parameters: Tensor) -> Tensor:
        """Return the score for parameters (P, 1), or (P, N) for each event."""
        if self._warp is None:
            raise RuntimeError("the objective has no events yet: call use() first")
        points = self._warp.tensor_points(parameters, *self._arrays)
        image = self._blur.forward(self._binning(points, self._weights))
        self._image = image.detach()
        return self._score.of_tensor(image)

    def _parameters(self, theta: FloatArray) -> Tensor:
        return torch.as_tensor(np.asarray(theta, np.float32)[:, None], device=self._device)
