"""The field of view from nothing but events: a few seconds are followed with lenses from narrow to wide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.calibration.lens_objective import LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage, refine_lens
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.frontend.estimator import VelocityEstimator
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory import AngularVelocities
from cmaxslam_fbp.trajectory.initialisation import fit_spline, integrate_angular_velocities
from cmaxslam_fbp.trajectory.spline import RotationSpline

FIELDS_DEG = (20.0, 28.0, 40.0, 56.0, 78.0, 110.0, 140.0)  # each leads to lenses within a quarter of it, and more
_STEP_NS = 50_000_000  # between knots of the motion
# At first only what a rough map shows; what bends the image joins in where pixels count.
_STAGES = (
    (LensStage(0.25, 1.0, 30), ("focal", "cx", "cy")),
    (LensStage(0.5, 1.0, 40), ("focal", "cx", "cy", "k1")),
    (LensStage(1.0, 1.0, 40), ("focal", "cx", "cy", "k1", "k2")),
)


@dataclass(frozen=True)
class FieldCandidate:
    """A lens that a scan found, the motion that goes with it, and the contrast of their map on terms equal for all."""

    start_deg: float
    camera: Camera
    rotations: RotationSpline
    contrast: float


def middle_camera(size: SensorSize, focal_px: float) -> Camera:
    """Return an ideal equidistant lens in the middle of a sensor.

    Near the axis all lenses are alike, and in between lie most: a wide pinhole lens has `k1 = 1/3`, and the barrel
    distortion of a common lens undoes about that.
    """
    cx, cy = (size.width - 1) / 2, (size.height - 1) / 2
    return Camera(size.width, size.height, focal_px, focal_px, cx, cy, (), "equidistant")


def try_field_of_view(events: Events, passages: Events, size: SensorSize, field_deg: float) -> FieldCandidate:
    """Return what a field of view leads to: the frontend follows the events, then lens and motion are adjusted."""
    camera = middle_camera(size, size.width / np.radians(field_deg))
    every = LensParameters.of(camera, "equidistant").names
    rotations, contrast = follow(events, camera), 0.0
    for stage, free in _STAGES:
        parameters = LensParameters.of(camera, "equidistant", set(every) - set(free))
        start = LensState(rotations, parameter_values(camera, parameters.names))
        state = refine_lens(passages, parameters, start, [stage])
        camera, rotations = parameters.camera(state.values), state.rotations
        contrast = stage.objective(passages, parameters, state).contrast
    return FieldCandidate(field_deg, camera, rotations, contrast)


def follow(events: Events, camera: Camera) -> RotationSpline:
    """Return the rotation that the frontend sees through a lens; it starts at the identity."""
    estimator = VelocityEstimator(camera, FrontendConfig(grid="sensor", still_rate_ev_s=0.0, min_evidence=0.0))
    estimates = list(estimator.run([events]))
    velocities = AngularVelocities(
        np.array([estimate.t_ns for estimate in estimates], np.int64),
        np.array([estimate.velocity for estimate in estimates]),
    )
    start_ns, end_ns = int(events.t_ns[0]), int(events.t_ns[-1])
    path = integrate_angular_velocities(velocities, Rotation.identity(), start_ns, end_ns)
    count = -(-(end_ns - start_ns) // _STEP_NS) + 3
    return fit_spline(path, order=4, start_ns=start_ns, step_ns=_STEP_NS, count=count)
