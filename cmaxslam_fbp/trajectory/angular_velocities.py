"""Angular velocity over time, as samples: a gyroscope's, or a frontend's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.nanoseconds import as_nanoseconds


@dataclass(frozen=True, eq=False)
class AngularVelocities:
    """Samples of the body-frame angular velocity `omega_rad_s` (M, 3) at strictly increasing times `t_ns` (M,)."""

    t_ns: npt.NDArray[np.int64]
    omega_rad_s: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.t_ns.dtype != np.int64 or self.omega_rad_s.shape != (len(self.t_ns), 3):
            raise TypeError(
                f"times {self.t_ns.dtype} {self.t_ns.shape} and velocities {self.omega_rad_s.shape} do not fit together"
            )
        if (np.diff(self.t_ns) <= 0).any():
            raise TrajectoryError("the times of angular velocities must increase")

    def __len__(self) -> int:
        return len(self.t_ns)

    def at(self, t_ns: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the velocities (..., 3) at times within the samples: on the cubic through the four nearest of them.

        `sum_j omega_j prod_{m != j} (t - t_m) / (t_j - t_m)`; on a line through two where there are fewer than four.
        """
        t = as_nanoseconds(t_ns)
        if len(self) < 2 or (t.size and (t.min() < self.t_ns[0] or t.max() > self.t_ns[-1])):
            raise TrajectoryError(
                f"times reach outside the {len(self)} angular velocities; restrict them to those covered"
            )
        count = 4 if len(self) >= 4 else 2
        first = np.clip(np.searchsorted(self.t_ns, t) - count // 2, 0, len(self) - count)
        nodes = [(self.t_ns[first + j] - t).astype(np.float64) for j in range(count)]  # from the time, in ns
        found = np.zeros((*t.shape, 3))
        for j in range(count):
            others = [node for node in nodes if node is not nodes[j]]
            weight = np.prod([node / (node - nodes[j]) for node in others], axis=0)
            found += weight[..., None] * self.omega_rad_s[first + j]
        return found

    def without_outliers(self) -> AngularVelocities:
        """Return the medians, axis by axis, of each velocity and its two neighbours: a single one does not count."""
        omega = self.omega_rad_s.copy()
        if len(self) > 2:
            omega[1:-1] = np.median(np.stack([omega[:-2], omega[1:-1], omega[2:]]), axis=0)
        return AngularVelocities(self.t_ns, omega)
