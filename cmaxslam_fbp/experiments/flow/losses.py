"""The losses: how sharp moved events are, and how smooth the flow is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cmaxslam_fbp.contrast.blur import gaussian_taps
from cmaxslam_fbp.experiments.flow.batches import FlowBatch
from cmaxslam_fbp.experiments.flow.trajectories import warp_events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.torch_module import Tensor, torch


@dataclass(frozen=True)
class LossSettings:
    """What makes the loss.

    Attributes
    ----------
    kernel, reconstruction, surrogate : str
        Of the binning, see `Binning`: what the arms of the study differ in.
    focus : {"gradient", "variance"}
        How sharpness is measured.
    blur_sigma_px : float
        Of the images of moved events.
    smoothness : float
        Weight of the smoothness beside the focus.
    """

    kernel: str = "rect"
    reconstruction: str | None = "linear"
    surrogate: str | None = None
    focus: str = "gradient"
    blur_sigma_px: float = 1.0
    smoothness: float = 0.003

    def binning(self, shape: Sequence[int]) -> Binning:
        """Return the binning of images of that shape."""
        return Binning(shape, self.kernel, self.reconstruction, surrogate=self.surrogate, backend="torch")


def flow_loss(batch: FlowBatch, coefficients: Tensor, references: Sequence[float], settings: LossSettings) -> Tensor:
    """Return the mean focus loss over the reference times, plus the weighted smoothness."""
    binning, focus = settings.binning(batch.shape), FOCUS[settings.focus]
    images = [event_images(batch, coefficients, t, binning, settings.blur_sigma_px) for t in references]
    mean_focus = torch.stack([focus(image) for image in images]).mean()
    return mean_focus + settings.smoothness * charbonnier_smoothness(coefficients)


def event_images(batch: FlowBatch, coefficients: Tensor, reference: float, binning: Binning, sigma_px: float) -> Tensor:
    """Return the images (B, 2, h, w) of the events at a reference time, by polarity, each with `1 - |t - t_ref|`."""
    points = warp_events(batch, coefficients, reference)
    images: Tensor = binning(points, 1 - (batch.t - reference).abs(), offsets=batch.offsets)
    return blur(images.reshape(-1, 2, *batch.shape), sigma_px)


def blur(images: Tensor, sigma_px: float) -> Tensor:
    """Return images (B, C, h, w) after a Gaussian blur, continued by reflection."""
    if sigma_px == 0:
        return images
    one_side = torch.as_tensor(gaussian_taps(sigma_px)).to(images)
    taps, radius = torch.cat([one_side.flip(0), one_side[1:]]), len(one_side) - 1
    single = torch.nn.functional.pad(images.flatten(0, 1)[:, None], [radius] * 4, mode="reflect")
    along_rows = torch.nn.functional.conv2d(single, taps[None, None, :, None])
    return torch.nn.functional.conv2d(along_rows, taps[None, None, None, :]).reshape(images.shape)


def sobel(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return Sobel's differences to the right and down of images (..., h, w), without their border."""
    right, down = images[..., 2:] - images[..., :-2], images[..., 2:, :] - images[..., :-2, :]
    return (
        right[..., :-2, :] + 2 * right[..., 1:-1, :] + right[..., 2:, :],
        down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:],
    )


def inverse_gradient_magnitude(images: Tensor) -> Tensor:
    """Return `1 / mean(|h_x| + |h_y|)` of images (B, 2, h, w), over all samples, polarities and pixels."""
    along_x, along_y = sobel(images)
    return 1 / (along_x.abs().mean() + along_y.abs().mean() + 1e-6)


def inverse_variance(images: Tensor) -> Tensor:
    """Return `1 / mean Var h` of images (B, 2, h, w), the variances averaged over samples and polarities."""
    return 1 / (images.var(dim=(2, 3)).mean() + 1e-6)


FOCUS: dict[str, Callable[[Tensor], Tensor]] = {"gradient": inverse_gradient_magnitude, "variance": inverse_variance}


def charbonnier_smoothness(coefficients: Tensor, epsilon: float = 1e-3) -> Tensor:
    """Return the mean of `sqrt(d^2 + epsilon^2)` over Sobel's differences d of the coefficients (B, 2 degree, h, w)."""
    return torch.stack([(d.square() + epsilon**2).sqrt().mean() for d in sobel(coefficients)]).mean()
