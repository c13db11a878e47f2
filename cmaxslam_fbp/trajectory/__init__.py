"""Orientation over time."""

from cmaxslam_fbp.trajectory.angular_velocities import AngularVelocities
from cmaxslam_fbp.trajectory.rotation_trajectory import RotationTrajectory

__all__ = ["AngularVelocities", "RotationTrajectory"]
