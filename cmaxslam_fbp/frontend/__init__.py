"""Velocity of the camera from a packet of events."""

from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.estimator import VelocityEstimator

__all__ = ["EstimateStatus", "VelocityEstimate", "VelocityEstimator"]
