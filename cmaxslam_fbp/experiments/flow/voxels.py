"""What the network sees: the signed events of a sample, spread over bins of time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.experiments.flow.samples import FlowSample
from cmaxslam_fbp.fbp import Binning

BINS = 15


def voxel_grid(sample: FlowSample, bins: int = BINS) -> SingleArray:
    """Return `V_b(x) = sum_i s_i max(0, 1 - |b - (B - 1) t_i|)` over the events at x, with the signs s: (bins, h, w).

    It is divided by the root mean square of what is not zero, so that rates and thresholds matter less.
    """
    points = np.stack([(bins - 1) * sample.t, sample.y, sample.x], axis=1).astype(np.float32)
    grid = _binning((bins, *sample.shape))(points, np.where(sample.p, 1, -1).astype(np.float32))
    touched = np.count_nonzero(grid)
    scale = np.sqrt((grid.astype(np.float64) ** 2).sum() / max(touched, 1))
    return np.asarray(grid / max(scale, 1e-6), np.float32)


@lru_cache(maxsize=8)
def _binning(shape: tuple[int, ...]) -> Binning:
    """The linear kernel is one at a bin's centre and zero at the next: whole pixels stay whole."""
    return Binning(shape, "linear", None)
