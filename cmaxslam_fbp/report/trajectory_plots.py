"""Orientation, angular velocity and error of trajectories as plots."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cmaxslam_fbp.evaluation.alignment import align_best_fit
from cmaxslam_fbp.evaluation.rotation_errors import absolute_errors_deg
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.report.curves import NAMES, yaw_pitch_roll_deg
from cmaxslam_fbp.report.plots import Curve, Panel, plot_panels
from cmaxslam_fbp.trajectory import RotationTrajectory

PARTS = ("orientation", "velocity", "error")


def plot_trajectories(
    estimates: Mapping[str, RotationTrajectory],
    ground_truth: RotationTrajectory | None = None,
    parts: tuple[str, ...] = PARTS,
) -> bytes:
    """Return a PNG of named trajectories over the seconds since the first pose of all.

    Each estimate is turned into the ground truth's world by its best fit; the error is left out without ground truth.
    """
    origin_ns = min(trajectory.start_ns for trajectory in estimates.values())
    end_ns = max(trajectory.end_ns for trajectory in estimates.values())
    truth = None if ground_truth is None else ground_truth.between(origin_ns, end_ns + 1)
    aligned = {name: (trajectory, _alignment(trajectory, truth)) for name, trajectory in estimates.items()}
    panels: list[Panel] = []
    if "orientation" in parts:
        angles = {name: yaw_pitch_roll_deg(turn * one.rotations) for name, (one, turn) in aligned.items()}
        true_angles = None if truth is None else yaw_pitch_roll_deg(truth.rotations)
        labels = [f"{name} [deg]" for name in NAMES]
        panels += _three(labels, estimates, angles, truth, true_angles, origin_ns)
    if "velocity" in parts:
        rates = {name: np.degrees(one.angular_velocity_at(one.t_ns)) for name, one in estimates.items()}
        true_rates = None if truth is None else np.degrees(truth.angular_velocity_at(truth.t_ns))
        labels = [f"velocity {axis} [deg/s]" for axis in "xyz"]
        panels += _three(labels, estimates, rates, truth, true_rates, origin_ns)
    if "error" in parts and truth is not None:
        curves = []
        for color, (name, (one, turn)) in enumerate(aligned.items()):
            t_ns = one.t_ns[truth.covers(one.t_ns)]
            errors = absolute_errors_deg(truth.rotation_at(t_ns), one.rotation_at(t_ns), turn)
            curves.append(Curve(name, (t_ns - origin_ns) / 1e9, errors, color))
        panels.append(Panel("error [deg]", curves, from_zero=True))
    return plot_panels(panels)


def _three(
    labels: list[str],
    estimates: Mapping[str, RotationTrajectory],
    values: Mapping[str, np.ndarray],
    truth: RotationTrajectory | None,
    true_values: np.ndarray | None,
    origin_ns: int,
) -> list[Panel]:
    """Return one panel for each of three components; the first one names the curves."""
    panels = []
    for axis, label in enumerate(labels):
        curves = [
            Curve(name if axis == 0 else "", (one.t_ns - origin_ns) / 1e9, values[name][:, axis], color)
            for color, (name, one) in enumerate(estimates.items())
        ]
        if truth is not None and true_values is not None:
            name = "ground truth" if axis == 0 else ""
            t_s = (truth.t_ns - origin_ns) / 1e9
            curves.append(Curve(name, t_s, true_values[:, axis], len(curves), is_reference=True))
        panels.append(Panel(label, curves))
    return panels


def _alignment(estimate: RotationTrajectory, truth: RotationTrajectory | None) -> Rotation:
    if truth is None:
        return Rotation.identity()
    covered = truth.covers(estimate.t_ns)
    if not covered.any():
        return Rotation.identity()
    return align_best_fit(truth.rotation_at(estimate.t_ns[covered]), estimate.rotations[covered])[0]
