"""Motions: orientation and angular velocity as exact functions of time; hand-held, recorded, turned aside, or none."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_lsq_spline
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.simulation.wandering import Wandering
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

_SHARES = np.array([1.0, 0.6, 0.7])  # of the extent, for yaw, pitch and roll
_DEGREE = 3  # of the spline through recorded orientations
_MAX_STEP_DEG = 60.0  # between two of them


class Motion(Protocol):
    """A smooth rotation over `0 <= t <= duration_s`, in seconds since the start of the recording."""

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        ...

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` (M, 3, 3) at times (M,)."""
        ...

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,): `R(t + dt) = R(t) exp(omega dt)`."""
        ...


class HandheldMotion:
    """A seeded random rotation that starts at rest at the identity and reaches a given peak speed.

    Yaw, pitch and roll wander as sums of sine waves, and `R_wc = R_y(yaw) R_x(pitch) R_z(roll)`, so the motion and its
    velocity are closed forms. The waves' tempo is solved for so that the largest `|omega|` is `peak_speed_deg_s`; it
    fades in over the first second.

    Parameters
    ----------
    duration_s : float
        Length of the motion.
    peak_speed_deg_s : float
        Largest `|omega|`. Zero gives a camera at rest.
    extent_deg : float
        Bound of `|yaw|`; pitch stays within 0.6 and roll within 0.7 of it.
    seed : int
        The same arguments give the same motion.
    """

    def __init__(self, duration_s: float, peak_speed_deg_s: float, extent_deg: float, seed: int) -> None:
        if not 0 <= peak_speed_deg_s < np.inf:
            raise SimulationError(f"a peak speed of {peak_speed_deg_s} deg/s is impossible; give 0 or more")
        if not 0 < extent_deg <= 140:
            raise SimulationError(f"an extent of {extent_deg} deg is impossible; give one within (0, 140]")
        self.duration_s = float(duration_s)
        self._angles = Wandering(duration_s, np.radians(extent_deg) * _SHARES, [seed, 0x4D6F7469])
        self._angles.reach_peak(
            np.radians(peak_speed_deg_s), lambda t_s: np.linalg.norm(self.angular_velocities(t_s), axis=1)
        )

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc = R_y(yaw) R_x(pitch) R_z(roll)` (M, 3, 3) at times (M,)."""
        (yaw, pitch, roll), _ = self._angles.values_and_rates(t_s)
        cy, sy, cp, sp, cr, sr = (f(a) for a in (yaw, pitch, roll) for f in (np.cos, np.sin))
        matrix = np.empty((len(yaw), 3, 3))
        matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 0, 2] = cy * cr + sy * sp * sr, sy * sp * cr - cy * sr, sy * cp
        matrix[:, 1, 0], matrix[:, 1, 1], matrix[:, 1, 2] = cp * sr, cp * cr, -sp
        matrix[:, 2, 0], matrix[:, 2, 1], matrix[:, 2, 2] = cy * sp * sr - sy * cr, sy * sr + cy * sp * cr, cy * cp
        return matrix

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,)."""
        (_, pitch, roll), (yaw_rate, pitch_rate, roll_rate) = self._angles.values_and_rates(t_s)
        cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
        return np.stack(
            [
                yaw_rate * sr * cp + pitch_rate * cr,
                yaw_rate * cr * cp - pitch_rate * sr,
                roll_rate - yaw_rate * sp,
            ],
            axis=-1,
        )


class NoRotation:
    """A camera that keeps its orientation, the identity."""

    def __init__(self, duration_s: float) -> None:
        self.duration_s = float(duration_s)

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the identity (M, 3, 3) at times (M,)."""
        return np.tile(np.eye(3), (np.size(t_s), 1, 1))

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return zeros (M, 3) in rad/s at times (M,)."""
        return np.zeros((np.size(t_s), 3))


class SampledMotion:
    """A smooth motion along the samples of a trajectory.

    The quaternions, with continuous signs, are fitted in the least-squares sense by a cubic B-spline that has one
    knot per `samples_per_knot` samples, and the spline is normalised. The motion is then twice continuously
    differentiable. Six samples per knot, which is 30 ms at 200 Hz, keep what a hand does and average away most of the
    noise of a motion capture, whose finite differences would shake the camera: on the ECD's `shapes_rotation` the
    speed of this motion differs from the gyroscope's by 11 deg/s RMS, that of an interpolation by 48 deg/s. The
    motion is this spline, not the samples: ground truth is taken from it.

    Parameters
    ----------
    trajectory : RotationTrajectory
        The samples of `R_wc`; time counts from the first.
    samples_per_knot : int
        Strength of the smoothing; at least 1.
    start_at_identity : bool
        Turn the world so that the motion begins with the identity: the camera first looks at the panorama's centre.

    Attributes
    ----------
    turn : (3, 3)
        From the trajectory's world to that of the motion.
    knots : (K,)
        Of the spline, in seconds.
    """

    def __init__(
        self, trajectory: RotationTrajectory, *, samples_per_knot: int = 6, start_at_identity: bool = True
    ) -> None:
        if len(trajectory) < 8:
            raise SimulationError(f"a trajectory of {len(trajectory)} poses is too short to move along; give 8 or more")
        if samples_per_knot < 1:
            raise SimulationError(f"samples_per_knot={samples_per_knot} is impossible; give 1 or more")
        t_s = (trajectory.t_ns - trajectory.start_ns).astype(np.float64) / NS_PER_S
        quaternions = trajectory.quaternions_xyzw
        dots = np.einsum("ij,ij->i", quaternions[:-1], quaternions[1:])
        steps_deg = np.degrees(2 * np.arccos(np.clip(np.abs(dots), 0, 1)))
        if steps_deg.max() > _MAX_STEP_DEG:
            place = int(np.argmax(steps_deg))
            raise SimulationError(
                f"the trajectory turns {steps_deg[place]:.0f} deg between poses {place} and {place + 1}: "
                "it is too coarse or broken there; give one sampled more densely"
            )
        signs = np.concatenate([[1.0], np.cumprod(np.where(dots < 0, -1.0, 1.0))])
        inner = t_s[_DEGREE - 1 : -(_DEGREE - 1) : samples_per_knot]
        ends = np.ones(_DEGREE + 1)
        # Knots at sample times: every basis function sees samples even where the recording has gaps.
        self.knots = np.concatenate([t_s[0] * ends, inner, t_s[-1] * ends])
        self._spline = make_lsq_spline(t_s, quaternions * signs[:, None], self.knots, k=_DEGREE)
        self._rate = self._spline.derivative()
        self.duration_s = float(t_s[-1])
        self.turn = np.eye(3)
        if start_at_identity:
            self.turn = self.rotations([0.0])[0].T

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` (M, 3, 3) at times (M,)."""
        return self.turn @ Rotation.from_quat(self._spline(np.asarray(t_s, np.float64))).as_matrix()

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,): `omega = 2 vec(q* q') / |q|^2`."""
        t = np.asarray(t_s, np.float64)
        q, rate = self._spline(t), self._rate(t)
        vector, scalar = q[:, :3], q[:, 3:]
        product = scalar * rate[:, :3] - rate[:, 3:] * vector - np.cross(vector, rate[:, :3])
        return 2 * product / np.einsum("ij,ij->i", q, q)[:, None]


class TurnedMotion:
    """A motion, and from `start_s` to `end_s` a smooth turn of the camera by `turn_deg` about the world's vertical.

    `R_wc = R_y(angle(t)) R(t)`, with an angle that rises as a quintic from rest to rest, to the right if positive.
    """

    def __init__(self, motion: Motion, start_s: float, end_s: float, turn_deg: float) -> None:
        self._motion, self.duration_s = motion, motion.duration_s
        self._start_s, self._length_s = start_s, end_s - start_s
        self._turn_rad = np.radians(turn_deg)

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` (M, 3, 3) at times (M,)."""
        x = self._progress(t_s)
        angles = self._turn_rad * x**3 * (10 + x * (6 * x - 15))
        return np.asarray(Rotation.from_euler("y", angles[:, None]).as_matrix() @ self._motion.rotations(t_s))

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,): the motion's, and the turn's."""
        x = self._progress(t_s)
        rates = self._turn_rad * 30 * (x * (1 - x)) ** 2 / self._length_s
        return np.asarray(self._motion.angular_velocities(t_s) + rates[:, None] * self._motion.rotations(t_s)[:, 1, :])

    def _progress(self, t_s: npt.ArrayLike) -> FloatArray:
        return np.clip((np.asarray(t_s, np.float64) - self._start_s) / self._length_s, 0, 1)
