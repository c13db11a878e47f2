"""Alignment and errors of trajectories."""

from cmaxslam_fbp.evaluation.evaluate import Evaluation, evaluate
from cmaxslam_fbp.evaluation.map_quality import event_area
from cmaxslam_fbp.evaluation.rotation_errors import AngularVelocityErrors, angular_velocity_errors
from cmaxslam_fbp.evaluation.table import evaluation_table, published_table

__all__ = [
    "AngularVelocityErrors",
    "Evaluation",
    "angular_velocity_errors",
    "evaluate",
    "evaluation_table",
    "event_area",
    "published_table",
]
