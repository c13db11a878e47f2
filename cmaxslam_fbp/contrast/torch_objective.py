"""The objective on tensors, on any device: values as they are, derivatives by autograd through the binning."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.contrast.blur import gaussian_taps
from cmaxslam_fbp.contrast.objective import lacks_second_derivatives
from cmaxslam_fbp.contrast.scores import NegativeBinomial, ScoreName
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.fbp import Binning


def torch_module() -> Any:
    """Return PyTorch, which one module of the project imports; a `MissingExtraError` where it is not installed."""
    from cmaxslam_fbp.fbp import torch_backend

    return vars(torch_backend)["torch"]


class TensorWarp(Protocol):
    """A warp that can be evaluated on tensors."""

    @property
    def parameter_count(self) -> int:
        """The number P of parameters."""

    def __len__(self) -> int:
        """Return the number N of events."""

    def arrays(self) -> tuple[SingleArray, ...]:
        """Return the arrays that `tensor_points` needs, as tensors on the device."""

    def tensor_points(self, theta: Any, *arrays: Any) -> Any:
        """Return the bin coordinates (N, 2) for parameters (P, 1), or (P, N) for each event; row before column."""


class TorchObjective:
    """`S(theta) = s(B h(x(theta)))` on tensors; see `ContrastObjective` for the mathematics.

    Events and images are float32 on the device, scores float64, as in the compiled objective; parameters and results
    are float64 NumPy arrays. The Hessian is the derivative of the synthesized gradient by autograd, row by row.

    Parameters
    ----------
    shape : (rows, columns)
        Of the image.
    score : str
        Name of the score.
    kernel, reconstruction, surrogate
        Of the binning, see `Binning`.
    blur_sigma_px : float
        Standard deviation of the Gaussian blur in bins; zero for none.
    device : str
        Where the tensors live: "cpu", "cuda", ...
    """

    def __init__(
        self,
        shape: tuple[int, int],
        score: ScoreName = "variance",
        *,
        kernel: str = "rect",
        reconstruction: str | None = "linear",
        surrogate: str | None = None,
        blur_sigma_px: float = 0.0,
        device: str = "cpu",
    ) -> None:
        self._torch = torch_module()
        try:
            self._device = self._torch.empty(0, device=device).device
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"the device '{device}' cannot be used: {str(error).splitlines()[0]}") from None
        has_derivatives = kernel != "rect" or reconstruction is not None or surrogate is not None
        self._binning = Binning(
            shape, kernel, reconstruction if has_derivatives else "linear", surrogate=surrogate, backend="torch"
        )
        self._shape, self._score_name = shape, score
        taps = gaussian_taps(blur_sigma_px)
        both_sides = np.concatenate([taps[:0:-1], taps]).astype(np.float32)
        self._taps = self._torch.as_tensor(both_sides, device=self._device)
        self._second: TorchObjective | None = None
        if lacks_second_derivatives(kernel, reconstruction, surrogate):
            self._second = TorchObjective(shape, score, kernel=kernel, blur_sigma_px=blur_sigma_px, device=device)
        self._warp: TensorWarp | None = None
        self._image: SingleArray = np.zeros(shape, np.float32)
        self.evaluations = 0
        self.hessians = 0

    @property
    def image(self) -> SingleArray:
        """The image of the last evaluation, after the blur."""
        return self._image

    def use(self, warp: TensorWarp, weights: SingleArray | None = None) -> None:
        """Set the events of the next evaluations, with one weight (N,) each (ones where there are none)."""
        self._warp = warp
        self._arrays = tuple(self._tensor(array) for array in warp.arrays())
        self._weights = None if weights is None else self._tensor(weights)
        if self._second is not None:
            self._second.use(warp, weights)

    def make_image(self, theta: FloatArray) -> None:
        """Make the image `B h(x(theta))`."""
        with self._torch.no_grad():
            self._score(self._points(self._parameters(theta)))

    def value(self, theta: FloatArray) -> float:
        """Return the score `s(B h)`."""
        self.evaluations += 1
        with self._torch.no_grad():
            return float(self._score(self._points(self._parameters(theta))))

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the score and its synthesized gradient (P,)."""
        self.evaluations += 1
        parameters = self._parameters(theta).requires_grad_()
        value = self._score(self._points(parameters))
        (gradient,) = self._torch.autograd.grad(value, parameters)
        return float(value.detach()), self._array(gradient)[:, 0]

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Return the synthesized second derivatives (P, P)."""
        self.hessians += 1
        if self._second is not None:
            return self._second.hessian(theta)
        parameters = self._parameters(theta).requires_grad_()
        value = self._score(self._points(parameters))
        (gradient,) = self._torch.autograd.grad(value, parameters, create_graph=True)
        grad = self._torch.autograd.grad
        rows = [self._array(grad(entry, parameters, retain_graph=True)[0])[:, 0] for entry in gradient[:, 0]]
        hessian = np.stack(rows)
        return 0.5 * (hessian + hessian.T)

    def gradient_scatter(self, theta: FloatArray) -> FloatArray:
        """Return `sum_i g_i g_i^T` (P, P) with the part `g_i` that each event has in the gradient."""
        count = len(self._arrays[0])
        each = self._parameters(theta).repeat(1, count).requires_grad_()  # the same parameters for every event
        (parts,) = self._torch.autograd.grad(self._score(self._points(each)), each)
        parts = parts.double()
        return self._array(parts @ parts.T)

    def _points(self, parameters: Any) -> Any:
        if self._warp is None:
            raise RuntimeError("the objective has no events yet: call use() first")
        return self._warp.tensor_points(parameters, *self._arrays)

    def _score(self, points: Any) -> Any:
        """Return the score of points, as a tensor."""
        image = self._blurred(self._binning(points, self._weights))
        self._image = np.ascontiguousarray(image.detach().cpu().numpy())
        h = image.double()
        if self._score_name == "variance":
            return ((h - h.mean()) ** 2).mean()
        if self._score_name == "mean_square":
            return (h**2).mean()
        torch, nb = self._torch, NegativeBinomial()
        terms = torch.lgamma(h + nb.r) - torch.lgamma(h + 1) + h * np.log(nb.p)
        return terms.sum() + h.numel() * (nb.r * np.log1p(-nb.p) - float(torch.lgamma(torch.tensor(nb.r).double())))

    def _blurred(self, image: Any) -> Any:
        """`B h`, the image continued by reflection."""
        radius = len(self._taps) // 2
        if not radius:
            return image
        functional = self._torch.nn.functional
        padded = functional.pad(image[None, None], (radius, radius, radius, radius), mode="reflect")
        rows = functional.conv2d(padded, self._taps[None, None, :, None])
        return functional.conv2d(rows, self._taps[None, None, None, :])[0, 0]

    def _parameters(self, theta: FloatArray) -> Any:
        return self._torch.as_tensor(np.asarray(theta, np.float32)[:, None], device=self._device)

    def _tensor(self, array: SingleArray) -> Any:
        return self._torch.as_tensor(array, device=self._device)

    @staticmethod
    def _array(tensor: Any) -> FloatArray:
        result: FloatArray = tensor.detach().cpu().numpy().astype(np.float64)
        return result
