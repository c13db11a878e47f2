"""Orientation over time, as samples with interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import TrajectoryError
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S, as_nanoseconds

_LARGEST_M = 1e12
_BLOCK = 10_000  # times at a time: what is computed on the way takes ten times as much memory as the result


@dataclass(frozen=True, eq=False)
class RotationTrajectory:
    """Samples of `R_wc` (camera to world) at strictly increasing times.

    Attributes
    ----------
    t_ns : (M,) int64
        Times in nanoseconds of the recording's own clock; at least two.
    quaternions_xyzw : (M, 4) float64
        Unit quaternions, stored in the order x y z w; normalised on construction.
    positions_m : (M, 3) float64, optional
        Positions of the camera in the world, where the source has them; the rotation does not depend on them.
    """

    t_ns: npt.NDArray[np.int64]
    quaternions_xyzw: FloatArray
    positions_m: FloatArray | None = None

    def __post_init__(self) -> None:
        t_ns = np.asarray(self.t_ns)
        quaternions = np.asarray(self.quaternions_xyzw, np.float64)
        if t_ns.dtype != np.int64:
            raise TypeError(f"trajectory times are int64 nanoseconds, not {t_ns.dtype}")
        if t_ns.ndim != 1 or quaternions.shape != (len(t_ns), 4):
            raise TypeError(f"times {t_ns.shape} and quaternions {quaternions.shape} do not fit together")
        if self.positions_m is not None and self.positions_m.shape != (len(t_ns), 3):
            raise TypeError(f"times {t_ns.shape} and positions {self.positions_m.shape} do not fit together")
        if len(t_ns) < 2:
            raise TrajectoryError(f"a trajectory needs at least two poses, not {len(t_ns)}")
        if (furthest_ns := max(-int(t_ns.min()), int(t_ns.max()))) > LARGEST_NS:
            raise TrajectoryError(f"a pose has a time of {furthest_ns} ns, which no clock shows")
        steps = np.diff(t_ns)
        if (steps <= 0).any():
            place = int(np.argmax(steps <= 0)) + 1
            raise TrajectoryError(
                f"the times of a trajectory must increase, but pose {place} at {t_ns[place]} ns follows one "
                f"at {t_ns[place - 1]} ns: sort the poses and drop repeated ones"
            )
        if self.positions_m is not None and not (good := (np.abs(self.positions_m) < _LARGEST_M).all(axis=1)).all():
            place = int(np.argmin(good))
            raise TrajectoryError(
                f"pose {place} has the position {self.positions_m[place].tolist()}, which is no place"
            )
        norms = np.linalg.norm(np.clip(quaternions, -2, 2), axis=1)  # clipped: squares of huge numbers overflow
        bad = ~(np.abs(norms - 1) < 1e-2)
        if bad.any():
            place = int(np.argmax(bad))
            raise TrajectoryError(
                f"pose {place} has the quaternion {quaternions[place].tolist()}, which is not of unit length: "
                "check the columns (x y z w)"
            )
        object.__setattr__(self, "t_ns", t_ns)
        object.__setattr__(self, "quaternions_xyzw", quaternions / norms[:, None])

    @staticmethod
    def from_rotations(t_ns: npt.NDArray[np.int64], rotations: Rotation) -> RotationTrajectory:
        """Make a trajectory of rotations, ours or SciPy's."""
        return RotationTrajectory(t_ns, rotations.as_quat())

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def start_ns(self) -> int:
        """Time of the first pose."""
        return int(self.t_ns[0])

    @property
    def end_ns(self) -> int:
        """Time of the last pose."""
        return int(self.t_ns[-1])

    @cached_property
    def rotations(self) -> Rotation:
        """The samples as rotations."""
        return Rotation(self.quaternions_xyzw)

    @cached_property
    def _turns(self) -> FloatArray:
        """The rotation vectors of the M - 1 segments, in the body's axes."""
        return (self.rotations[:-1].inv() * self.rotations[1:]).as_rotvec()

    @cached_property
    def _segment_rates(self) -> tuple[FloatArray, FloatArray]:
        """Mid-times (relative ns) and body rates of the M - 1 segments."""
        times = self._relative(self.t_ns)
        steps_s = np.diff(times) / NS_PER_S
        return (times[:-1] + times[1:]) / 2, self._turns / steps_s[:, None]

    def _relative(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Nanoseconds since the start: as floats these are exact for 104 days."""
        return (as_nanoseconds(t_ns) - self.start_ns).astype(np.float64)

    def covers(self, t_ns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which of the times lie within the trajectory, its ends included."""
        t = as_nanoseconds(t_ns)
        return (t >= self.start_ns) & (t <= self.end_ns)

    def _require_covered(self, t_ns: npt.ArrayLike) -> None:
        if not self.covers(t_ns).all():
            t = as_nanoseconds(t_ns)
            raise TrajectoryError(
                f"times {t.min()} to {t.max()} ns reach outside the trajectory, "
                f"which covers {self.start_ns} to {self.end_ns} ns"
            )

    def rotation_at(self, t_ns: npt.ArrayLike) -> Rotation:
        """Return `R_wc` at a time or times by spherical linear interpolation: `R_k exp(u log(R_k^T R_{k+1}))`."""
        self._require_covered(t_ns)
        times = as_nanoseconds(t_ns)
        quaternions = np.empty((times.size, 4))
        for first in range(0, times.size, _BLOCK):
            t = times.reshape(-1)[first : first + _BLOCK]
            k = np.clip(np.searchsorted(self.t_ns, t, side="right") - 1, 0, len(self) - 2)
            u = (t - self.t_ns[k]) / (self.t_ns[k + 1] - self.t_ns[k])
            turned = self.rotations[k] * Rotation.from_rotvec(u[..., None] * self._turns[k])
            quaternions[first : first + _BLOCK] = turned.as_quat()
        return Rotation(quaternions.reshape(*times.shape, 4))

    def angular_velocity_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return the body-frame angular velocity (..., 3) in rad/s: `R(t + dt) = R(t) exp(omega dt)`.

        The mean rates of the segments, which are second-order accurate at the segments' middles, are
        interpolated linearly between the middles and continued along the line at both ends.
        """
        self._require_covered(t_ns)
        middles, rates = self._segment_rates
        times = self._relative(t_ns)
        if len(middles) == 1:
            return np.broadcast_to(rates[0], (*times.shape, 3)).copy()
        left = np.clip(np.searchsorted(middles, times, side="right") - 1, 0, len(middles) - 2)
        weight = ((times - middles[left]) / (middles[left + 1] - middles[left]))[..., None]
        return (1 - weight) * rates[left] + weight * rates[left + 1]

    def between(self, start_ns: int, end_ns: int) -> RotationTrajectory:
        """Return the poses of the half-open time range `start_ns <= t < end_ns`."""
        keep = (self.t_ns >= start_ns) & (self.t_ns < end_ns)
        if keep.sum() < 2:
            raise TrajectoryError(
                f"fewer than two poses between {start_ns} and {end_ns} ns; "
                f"the trajectory covers {self.start_ns} to {self.end_ns} ns"
            )
        positions_m = None if self.positions_m is None else self.positions_m[keep]
        return RotationTrajectory(self.t_ns[keep], self.quaternions_xyzw[keep], positions_m)

    def covering(self, start_ns: int, end_ns: int) -> RotationTrajectory:
        """Return the poses from the last one before a range to the first one after it, as far as there are any."""
        first = max(int(np.searchsorted(self.t_ns, start_ns, side="right")) - 1, 0)
        last = min(int(np.searchsorted(self.t_ns, end_ns)), len(self) - 1)
        return self.between(int(self.t_ns[first]), int(self.t_ns[last]) + 1)
