"""The types of the arrays that the package passes around; shapes stand in the docstrings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
SingleArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Picture = npt.NDArray[np.uint8]
