"""A compact U-Net from voxels to the coefficients of the pixels' trajectories."""

from __future__ import annotations

from cmaxslam_fbp.experiments.flow.batches import BINS
from cmaxslam_fbp.fbp.torch_module import Tensor, torch

nn = torch.nn

SLOPE = 0.1  # of the rectifiers, below zero
UNIT_PX = 10.0  # what the network's last layer counts in: flows of this size come from activations of about one


def convolutions(channels_in: int, channels_out: int) -> torch.nn.Module:
    """Return two convolutions of 3 x 3 pixels, each with a leaky rectifier."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1),
        nn.LeakyReLU(SLOPE),
        nn.Conv2d(channels_out, channels_out, 3, padding=1),
        nn.LeakyReLU(SLOPE),
    )


class FlowNet(nn.Module):
    """Voxels (B, bins, h, w) to coefficients (B, 2 degree, h, w) in pixels; h and w are multiples of `2 ** levels`.

    Each level down halves the image and doubles the channels; on the way up it joins what it was on the way down.
    An untrained network says flows of about two pixels. None at all would be a bad start: it leaves events at whole
    pixels, where the linear kernel is sharpest and the slope of some surrogates is zero.

    Parameters
    ----------
    degree : int
        Of the trajectories: 1 for a constant flow, 2 for one that changes over the stretch.
    channels : int
        Of the first level.
    levels : int
        How many times the image is halved.
    """

    def __init__(self, degree: int = 1, channels: int = 16, levels: int = 3) -> None:
        super().__init__()
        self.degree = degree
        widths = [channels * 2**level for level in range(levels + 1)]
        self.down = nn.ModuleList(convolutions(*pair) for pair in zip([BINS, *widths[:-1]], widths, strict=True))
        self.up = nn.ModuleList(convolutions(fine + 2 * fine, fine) for fine in widths[:-1])
        self.head = nn.Conv2d(channels, 2 * degree, 1)
        for block in (*self.down, *self.up):
            for layer in block.children():
                if isinstance(layer, nn.Conv2d):
                    nn.init.kaiming_normal_(layer.weight, SLOPE)
        nn.init.normal_(self.head.weight, std=0.05)
        nn.init.zeros_(self.head.bias)  # type: ignore[arg-type]

    def forward(self, voxels: Tensor) -> Tensor:
        """Return the coefficients."""
        features = voxels.contiguous(memory_format=torch.channels_last)  # a quarter faster on a CPU
        finer: list[Tensor] = []
        for level, block in enumerate(self.down):
            features = block(features if level == 0 else nn.functional.avg_pool2d(features, 2))
            finer.append(features)
        for level in reversed(range(len(self.up))):
            enlarged = nn.functional.interpolate(features, scale_factor=2, mode="bilinear", align_corners=False)
            features = self.up[level](torch.cat([enlarged, finer[level]], dim=1))
        coefficients: Tensor = UNIT_PX * self.head(features)
        return coefficients
