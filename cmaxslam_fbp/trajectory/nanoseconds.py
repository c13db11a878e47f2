"""Times that a caller asks for, as int64 nanoseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def as_nanoseconds(t_ns: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return integer times as int64; refuse floats, which are seconds by mistake or lose digits of Unix stamps."""
    times = np.asarray(t_ns)
    if times.size and times.dtype.kind not in "iu":
        raise TypeError(f"times are asked for in integer nanoseconds, not {times.dtype}; convert seconds with care")
    return times.astype(np.int64, copy=False)
