"""Time is int64 nanoseconds wherever it is kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray

NS_PER_S = 1_000_000_000
LARGEST_NS = 2**62  # in the year 2116; differences of times up to here fit 64 bits


def as_nanoseconds(t_ns: npt.ArrayLike) -> IntArray:
    """Return integer times as int64; refuse floats, which are seconds by mistake or lose digits of Unix stamps."""
    times = np.asarray(t_ns)
    if times.size and times.dtype.kind not in "iu":
        raise TypeError(f"times are asked for in integer nanoseconds, not {times.dtype}; convert seconds with care")
    return times.astype(np.int64, copy=False)
