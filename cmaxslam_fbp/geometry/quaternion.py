"""The one place where quaternion orders are converted: `xyzw` inside, pyquaternion's `wxyz` at the border."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyquaternion import Quaternion


def to_pyquaternion(quaternion_xyzw: npt.ArrayLike) -> Quaternion:
    """Return a `pyquaternion.Quaternion` of a quaternion (4,) in the order x y z w."""
    from pyquaternion import Quaternion

    x, y, z, w = np.asarray(quaternion_xyzw, np.float64)
    return Quaternion(w, x, y, z)


def from_pyquaternion(quaternion: Quaternion) -> npt.NDArray[np.float64]:
    """Return the quaternion (4,) in the order x y z w of a `pyquaternion.Quaternion`."""
    w, x, y, z = quaternion.elements
    return np.array([x, y, z, w], np.float64)
