from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def cloud() -> Callable[..., SimpleNamespace]:
    """Points inside, across the border and outside of a grid, some not finite; with tangents and cotangents."""

    def make(shape: tuple[int, ...], dtype: type = np.float64, count: int = 200, seed: int = 0) -> SimpleNamespace:
        rng = np.random.default_rng(seed)
        size = len(shape)
        points = (rng.random((count, size)) * (np.array(shape) + 8) - 4).astype(dtype)
        points[3, 0], points[5, -1], points[7], points[9] = np.nan, np.inf, 1e30, -1e30
        points[11:15] = np.round(points[11:15])  # on the centres of bins, where kernels have kinks
        points[15:19] = np.round(points[15:19]) + 0.5  # on their edges, where rect jumps
        return SimpleNamespace(
            points=points,
            weights=rng.normal(size=count).astype(dtype),
            points_dot=rng.normal(size=(count, size)).astype(dtype),
            weights_dot=rng.normal(size=count).astype(dtype),
            frame_bar=rng.normal(size=shape).astype(dtype),
            ignored=2,
        )

    return make
