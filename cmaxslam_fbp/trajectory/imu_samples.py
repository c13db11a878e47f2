"""What an inertial measurement unit recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.trajectory.angular_velocities import AngularVelocities


@dataclass(frozen=True, eq=False)
class ImuSamples:
    """Body-frame angular velocity and linear acceleration, each (M, 3), at times `t_ns` (M,) int64."""

    t_ns: npt.NDArray[np.int64]
    angular_velocity_rad_s: npt.NDArray[np.float64]
    linear_acceleration_m_s2: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        wanted = (len(self.t_ns), 3)
        if self.angular_velocity_rad_s.shape != wanted or self.linear_acceleration_m_s2.shape != wanted:
            raise TypeError(
                f"angular velocities {self.angular_velocity_rad_s.shape} and accelerations "
                f"{self.linear_acceleration_m_s2.shape} do not fit {len(self.t_ns)} times"
            )

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def gyroscope(self) -> AngularVelocities:
        """The angular velocities alone, at strictly increasing times: of equal stamps the first counts."""
        order = np.argsort(self.t_ns, kind="stable")
        t_ns, first = np.unique(self.t_ns[order], return_index=True)
        return AngularVelocities(t_ns, self.angular_velocity_rad_s[order][first])
