"""What an inertial measurement unit recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.trajectory.angular_velocities import AngularVelocities

_LARGEST = 1e6  # rad/s and m/s^2


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

        if self.t_ns.dtype != np.int64:
            raise TypeError(f"IMU times are int64 nanoseconds, not {self.t_ns.dtype}")
        columns = (self.angular_velocity_rad_s, self.linear_acceleration_m_s2)
        good = np.ones(len(self.t_ns), np.bool_)
        for column in columns:
            good &= (np.abs(column) < _LARGEST).all(axis=1)  # not so for a NaN
        if not good.all():
            place = int(np.argmin(good))
            raise TrajectoryError(
                f"IMU sample {place} is no measurement: {np.hstack([c[place] for c in columns]).tolist()}"
            )

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def gyroscope(self) -> AngularVelocities:
        """The angular velocities alone, at strictly increasing times: of equal stamps the first counts."""
        if (np.diff(self.t_ns) > 0).all():
            return AngularVelocities(self.t_ns, self.angular_velocity_rad_s)
        order = np.argsort(self.t_ns, kind="stable")
        t_ns, first = np.unique(self.t_ns[order], return_index=True)
        return AngularVelocities(t_ns, self.angular_velocity_rad_s[order][first])
