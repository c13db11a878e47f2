"""What a report needs beyond a run's own files: field of view, ground truth, gyroscope, errors over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.evaluation.alignment import align_best_fit
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.report.curves import even_indices, peak_indices
from cmaxslam_fbp.trajectory import AngularVelocities, RotationTrajectory

_BISECTIONS = 12
_BORDER_STEPS = 12  # per side: enough for the bend that lens distortion gives to the border


def field_of_view(camera: Camera) -> FloatArray:
    """Return the border of what is seen as unit directions (K, 3) in the camera frame, clockwise from upper left."""
    right, bottom = camera.width - 0.5, camera.height - 0.5
    corners = np.array([[-0.5, -0.5], [right, -0.5], [right, bottom], [-0.5, bottom]])
    share = np.linspace(0, 1, _BORDER_STEPS, endpoint=False)[:, None]
    border = np.concatenate(
        [(1 - share) * a + share * b for a, b in zip(corners, np.roll(corners, -1, 0), strict=True)]
    )
    # Where the lens does not see on the border, the border of its field on the way to the middle stands for it.
    centre = np.array([camera.cx, camera.cy])
    inner, outer = np.zeros(len(border)), np.ones(len(border))
    middle = outer
    for _ in range(_BISECTIONS):
        is_seen = np.isfinite(camera.undistort(centre + middle[:, None] * (border - centre))).all(axis=1)
        inner, outer = np.where(is_seen, middle, inner), np.where(is_seen, outer, middle)
        middle = (inner + outer) / 2
    points = camera.undistort(centre + inner[:, None] * (border - centre))
    rays = np.column_stack([points, np.ones(len(border))])
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def describe_reference(
    trajectory: RotationTrajectory,
    start_ns: int,
    camera: Camera,
    ground_truth: RotationTrajectory | None,
    gyroscope: AngularVelocities | None,
) -> dict[str, Any]:
    """Return the values of `report_data.json`; times are seconds from `start_ns`, curves have at most 2000 points.

    The ground truth is given in the world of the estimate, by the rotation that fits best. Its angular velocity stands
    in for a gyroscope's where there is none. What does not exist is None.
    """
    values: dict[str, Any] = {
        "camera": {"width": camera.width, "height": camera.height, "fx": camera.fx, "fy": camera.fy},
        "field_of_view": _rounded(field_of_view(camera), 6),
        "ground_truth": None,
        "angular_velocity": None,
        "errors": None,
    }
    if ground_truth is not None:
        covered = ground_truth.covers(trajectory.t_ns)
        if covered.sum() >= 2:
            times_ns = trajectory.t_ns[covered]
            truth = ground_truth.rotation_at(times_ns)
            alignment, angles_rad = align_best_fit(truth, trajectory.rotations[covered])
            chosen = even_indices(len(times_ns))
            aligned = (alignment.inv() * truth[chosen]).as_quat()
            values["ground_truth"] = {
                "t_s": _seconds(times_ns[chosen], start_ns),
                "quaternions_xyzw": _rounded(aligned, 7),
            }
            chosen = peak_indices(angles_rad)
            values["errors"] = {
                "t_s": _seconds(times_ns[chosen], start_ns),
                "absolute_deg": _rounded(np.degrees(angles_rad[chosen]), 5),
            }
    values["angular_velocity"] = _reference_velocity(trajectory, start_ns, ground_truth, gyroscope)
    return values


def _reference_velocity(
    trajectory: RotationTrajectory,
    start_ns: int,
    ground_truth: RotationTrajectory | None,
    gyroscope: AngularVelocities | None,
) -> dict[str, Any] | None:
    """Return the samples of gyroscope or ground truth that lie within the run."""
    source = ground_truth if gyroscope is None or len(gyroscope) == 0 else gyroscope
    if source is None:
        return None
    times_ns = source.t_ns[(source.t_ns >= trajectory.start_ns) & (source.t_ns <= trajectory.end_ns)]
    if len(times_ns) < 2:
        return None
    chosen = times_ns[even_indices(len(times_ns))]
    if isinstance(source, AngularVelocities):
        omega = source.omega_rad_s[np.searchsorted(source.t_ns, chosen)]
    else:
        omega = source.angular_velocity_at(chosen)
    return {
        "source": "gyroscope" if isinstance(source, AngularVelocities) else "ground truth",
        "t_s": _seconds(chosen, start_ns),
        "omega_rad_s": _rounded(omega, 5),
    }


def _seconds(times_ns: IntArray, start_ns: int) -> list[float]:
    return _rounded((times_ns - start_ns) / 1e9, 6)


def _rounded(values: FloatArray, decimals: int) -> Any:
    return np.round(values, decimals).tolist()
