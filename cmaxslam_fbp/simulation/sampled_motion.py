"""The motion of a recorded trajectory: a smoothing spline through its quaternions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_lsq_spline
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

_DEGREE = 3
_MAX_STEP_DEG = 60.0


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
        knots = np.concatenate([t_s[0] * ends, inner, t_s[-1] * ends])
        self._spline = make_lsq_spline(t_s, quaternions * signs[:, None], knots, k=_DEGREE)
        self._rate = self._spline.derivative()
        self._duration_s = float(t_s[-1])
        self._turn = np.eye(3)
        if start_at_identity:
            self._turn = self.rotations([0.0])[0].T

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self._duration_s

    def rotations(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` (M, 3, 3) at times (M,)."""
        return self._turn @ Rotation.from_quat(self._spline(np.asarray(t_s, np.float64))).as_matrix()

    def angular_velocities(self, t_s: npt.ArrayLike) -> FloatArray:
        """Return the body rates (M, 3) in rad/s at times (M,): `omega = 2 vec(q* q') / |q|^2`."""
        t = np.asarray(t_s, np.float64)
        q, rate = self._spline(t), self._rate(t)
        vector, scalar = q[:, :3], q[:, 3:]
        product = scalar * rate[:, :3] - rate[:, 3:] * vector - np.cross(vector, rate[:, :3])
        return 2 * product / np.einsum("ij,ij->i", q, q)[:, None]
