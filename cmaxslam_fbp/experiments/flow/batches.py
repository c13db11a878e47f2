"""Samples as tensors: what the network sees, and the events behind each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.experiments.flow.samples import FlowSample
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.torch_module import Tensor, torch

BINS = 15  # of time


@dataclass(frozen=True, eq=False)
class FlowBatch:
    """B samples of one size with M events in all.

    Attributes
    ----------
    voxels : (B, bins, height, width)
        What the network sees.
    t : (M,)
        Times of the events; those of a sample lie behind each other, the brighter ones after the darker ones.
    places : (M, 2)
        Their rows and columns.
    pixels : (M,)
        Which of all `B height width` pixels each belongs to.
    offsets : (2 B + 1,)
        Where the events of each sample and polarity begin.
    """

    voxels: Tensor
    t: Tensor
    places: Tensor
    pixels: Tensor
    offsets: Tensor

    @property
    def shape(self) -> torch.Size:
        """Height and width."""
        return self.voxels.shape[-2:]

    def __len__(self) -> int:
        return len(self.voxels)


def make_batch(samples: Sequence[FlowSample], device: str = "cpu") -> FlowBatch:
    """Return samples of one size as a batch."""
    height, width = samples[0].shape
    orders = [np.argsort(sample.p, kind="stable") for sample in samples]
    t, x, y = (
        np.concatenate([getattr(sample, name)[order] for sample, order in zip(samples, orders, strict=True)])
        for name in ("t", "x", "y")
    )
    counts = np.array([count for one in samples for count in (np.count_nonzero(~one.p), np.count_nonzero(one.p))])
    owner = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    pixels = (owner * height + y) * width + x
    places = np.stack([y, x], axis=1).astype(np.float32)
    arrays = np.stack([voxel_grid(sample) for sample in samples]), t, places, pixels, np.append(0, np.cumsum(counts))
    return FlowBatch(*(torch.as_tensor(array, device=device) for array in arrays))


def true_flow(samples: Sequence[FlowSample]) -> tuple[Tensor, Tensor]:
    """Return the true flows (B, 2, height, width) and where they are known (B, height, width)."""
    flow = torch.as_tensor(np.stack([sample.flow_px for sample in samples]))
    return flow, torch.as_tensor(np.stack([sample.is_valid for sample in samples]))


def voxel_grid(sample: FlowSample) -> SingleArray:
    """Return `V_b(x) = sum_i s_i max(0, 1 - |b - (B - 1) t_i|)` over the events at x, with the signs s: (BINS, h, w).

    It is divided by the root mean square of what is not zero, so that rates and thresholds matter less.
    """
    points = np.stack([(BINS - 1) * sample.t, sample.y, sample.x], axis=1).astype(np.float32)
    grid = _binning((BINS, *sample.shape))(points, np.where(sample.p, 1, -1).astype(np.float32))
    touched = np.count_nonzero(grid)
    scale = np.sqrt((grid.astype(np.float64) ** 2).sum() / max(touched, 1))
    return np.asarray(grid / max(scale, 1e-6), np.float32)


@lru_cache(maxsize=8)
def _binning(shape: tuple[int, ...]) -> Binning:
    """The linear kernel is one at a bin's centre and zero at the next: whole pixels stay whole."""
    return Binning(shape, "linear", None)
