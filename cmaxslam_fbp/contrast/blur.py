"""Gaussian blur of an image, and its exact adjoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.contrast import blur_kernels as kernels

if TYPE_CHECKING:
    from cmaxslam_fbp.fbp.torch_module import Tensor, torch

Boundary = Literal["reflect", "zero", "wrap"]
Pixel = TypeVar("Pixel", np.float32, np.float64)
Shape = tuple[int, int]


class GaussianBlur(Generic[Pixel]):
    """The linear map `B` that blurs images of one shape and precision, with its transpose `B^T`.

    The filter is separable with the taps of OpenCV's `GaussianBlur` for floating-point images: `exp(-k^2 / 2 sigma^2)`
    for `|k|` up to about four sigma, normalised to the sum one. The image is continued

    - `reflect`: by reflection about the centres of its border pixels, as OpenCV does by default (`BORDER_REFLECT_101`);
    - `zero`: by zeros, as it is where an image is the part of a larger one that holds all events;
    - `wrap`: from the other side, as the columns of a panorama of 360 degrees.

    A blur keeps the arrays of its intermediate results: it allocates nothing per call, and each thread needs its own.
    Tensors, on any device and of any floating type, are new ones; autograd knows their transpose.

    Parameters
    ----------
    shape : (height, width)
        Of the images.
    sigma_px : float
        Standard deviation in pixels; zero leaves images as they are.
    dtype : float32 or float64
        Of the images and of the computation.
    rows, columns : Boundary
        How the image continues above and below, and to the left and right.
    """

    def __init__(
        self,
        shape: Shape,
        sigma_px: float,
        dtype: type[Pixel],
        *,
        rows: Boundary = "reflect",
        columns: Boundary = "reflect",
    ) -> None:
        height, width = shape
        if height < 1 or width < 1 or not 0 <= sigma_px < np.inf:
            raise ValueError(f"cannot blur images of {height} x {width} pixels with a sigma of {sigma_px}")
        self.shape, self.sigma_px = shape, sigma_px
        taps = gaussian_taps(sigma_px)
        self.radius = len(taps) - 1
        self._taps: npt.NDArray[Pixel] = taps.astype(dtype)
        self._rows = _continuation(height, self.radius, rows)
        self._columns = _continuation(width, self.radius, columns)
        self._between: npt.NDArray[Pixel] = np.empty(shape, dtype)
        self._extended: npt.NDArray[Pixel] = np.zeros(width + 4 * self.radius, dtype)
        self._spread: npt.NDArray[Pixel] = np.empty(width + 2 * self.radius, dtype)
        self._on_device: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor, Tensor]] = {}

    @overload
    def forward(self, image: npt.NDArray[Pixel], out: npt.NDArray[Pixel] | None = None) -> npt.NDArray[Pixel]: ...
    @overload
    def forward(self, image: Tensor) -> Tensor: ...
    def forward(
        self, image: npt.NDArray[Pixel] | Tensor, out: npt.NDArray[Pixel] | None = None
    ) -> npt.NDArray[Pixel] | Tensor:
        """Return the blurred image `B h` (height, width); `out` takes it where given, and may be the image."""
        if not isinstance(image, np.ndarray):
            return self._of_tensor(image)
        out = self._target(image, out)
        if self.radius == 0:
            return out
        kernels.filter_rows(image, self._taps, self._rows, self._between)
        row = self._extended[: self.shape[1] + 2 * self.radius]
        kernels.filter_columns(self._between, self._taps, self._columns, row, out)
        return out

    def adjoint(self, image: npt.NDArray[Pixel], out: npt.NDArray[Pixel] | None = None) -> npt.NDArray[Pixel]:
        """Return `B^T g` (height, width): `<B h, g> = <h, B^T g>`; `out` takes it where given, and may be the image."""
        out = self._target(image, out)
        if self.radius == 0:
            return out
        kernels.filter_columns_transposed(image, self._taps, self._columns, self._extended, self._spread, self._between)
        kernels.filter_rows_transposed(self._between, self._taps, self._rows, self._spread[: self.shape[1]], out)
        return out

    def _of_tensor(self, image: Tensor) -> Tensor:
        """Return `B h` of a tensor (height, width)."""
        if tuple(image.shape) != self.shape:
            raise ValueError(f"an image of {tuple(image.shape)} does not fit a blur of {self.shape}")
        if self.radius == 0:
            return image
        from cmaxslam_fbp.fbp.torch_module import torch

        key = (image.device, image.dtype)
        if key not in self._on_device:
            weights = gaussian_taps(self.sigma_px)
            both_sides = np.concatenate([weights[:0:-1], weights])
            self._on_device[key] = (
                torch.as_tensor(both_sides, device=image.device, dtype=image.dtype),
                torch.as_tensor(self._rows, device=image.device),
                torch.as_tensor(self._columns, device=image.device),
            )
        taps, rows, columns = self._on_device[key]
        # A line of zeros behind the last one is where the index -1 points to.
        padded = torch.nn.functional.pad(image, (0, 1, 0, 1))
        extended = padded[rows][:, columns][None, None]
        along_rows = torch.nn.functional.conv2d(extended, taps[None, None, :, None])
        return torch.nn.functional.conv2d(along_rows, taps[None, None, None, :])[0, 0]

    def _target(self, image: npt.NDArray[Pixel], out: npt.NDArray[Pixel] | None) -> npt.NDArray[Pixel]:
        """Return where to write, after making sure that both arrays fit; a blur that is none writes here already."""
        if out is None:
            out = np.empty_like(self._between)
        for array in (image, out):
            if array.shape != self.shape or array.dtype != self._taps.dtype:
                raise ValueError(
                    f"an image of {array.dtype} {array.shape} does not fit a blur of {self._taps.dtype} {self.shape}"
                )
        if self.radius == 0 and out is not image:
            np.copyto(out, image)
        return out


def gaussian_taps(sigma_px: float) -> FloatArray:
    """Return the weights (radius + 1,) of the neighbours at distance 0, 1, ... radius; the two-sided sum is one.

    The radius is OpenCV's for floating-point images: half of `round(8 sigma + 1)`, made odd.
    """
    radius = (round(8 * sigma_px + 1) | 1) // 2
    distances = np.arange(radius + 1)
    weights = np.exp(-0.5 * (distances / sigma_px) ** 2) if radius else np.ones(1)
    return weights / (weights[0] + 2 * weights[1:].sum())


def _continuation(size: int, radius: int, boundary: Boundary) -> IntArray:
    """Return the line (size + 2 radius,) that stands at each place of an extended axis; -1 for zeros."""
    places = np.arange(-radius, size + radius)
    if boundary == "zero":
        return np.where((places >= 0) & (places < size), places, -1)
    if boundary == "wrap":
        return places % size
    if boundary == "reflect":
        period = max(2 * (size - 1), 1)
        folded = places % period
        return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(places)
    raise ValueError(f"an image cannot be continued by '{boundary}'; choose reflect, zero or wrap")
