"""The field of view from nothing but events: a few seconds are followed with lenses from narrow to wide."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.bearing_grid import BearingGrid
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
_FRONTEND = FrontendConfig(
    grid="sensor", still_rate_ev_s=0.0, min_evidence=0.0, interval_s=0.02, events_per_packet=10_000
)
_FOLLOWED_PIXELS = 320 * 240
_WIDEST_DEG = 60.0  # off the axis: what lies beyond decides no plumb_bob lens, whose tangents run away there
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


def convert_lens(camera: Camera, model: str) -> Camera:
    """Return the camera of another model, with the same principal point, that sees nearest to the same directions.

    Minimises the distances in pixels over a grid on the sensor. The radial coefficients of both are few and smooth:
    within the image they agree to a fraction of a pixel.
    """
    kind = "equidistant" if model == "equidistant" else "plumb_bob"
    if camera.distortion_model == kind and model != "pinhole":
        return camera
    pixels = BearingGrid(camera.width, camera.height).pixels
    plane = camera.undistort(pixels)
    seen = np.linalg.norm(plane, axis=1) < np.tan(np.radians(_WIDEST_DEG))
    rays = np.column_stack([plane[seen], np.ones(int(seen.sum()))])
    fixed = ("aspect", "cx", "cy", "p1", "p2", "k3", "k4") if model != "pinhole" else ("aspect", "cx", "cy")
    start = replace(camera, distortion=(), distortion_model=kind)
    names = [name for name in LensParameters.of(start, model).names if name not in fixed]
    parameters = LensParameters.of(start, model, fixed=set(LensParameters.of(start, model).names) - set(names))

    def misses(values: FloatArray) -> FloatArray:
        return (parameters.camera(values).project(rays) - pixels[seen]).reshape(-1)

    found = least_squares(misses, parameter_values(start, names), x_scale=parameters.scales)
    return parameters.camera(np.asarray(found.x))


def follow(events: Events, camera: Camera) -> RotationSpline:
    """Return the rotation that the frontend sees through a lens; it starts at the identity.

    Of a large sensor blocks of pixels are taken for one.
    """
    block = max(1, round(np.sqrt(camera.width * camera.height / _FOLLOWED_PIXELS)))
    size = SensorSize(-(-camera.width // block), -(-camera.height // block))
    merged = Events(events.t_ns, events.x // block, events.y // block, events.p)
    estimator = VelocityEstimator(middle_camera(size, camera.fx / block), _FRONTEND)
    estimates = list(estimator.run([merged]))
    velocities = AngularVelocities(
        np.array([estimate.t_ns for estimate in estimates], np.int64),
        np.array([estimate.velocity for estimate in estimates]),
    )
    start_ns, end_ns = int(events.t_ns[0]), int(events.t_ns[-1])
    path = integrate_angular_velocities(velocities, Rotation.identity(), start_ns, end_ns)
    count = -(-(end_ns - start_ns) // _STEP_NS) + 3
    return fit_spline(path, order=4, start_ns=start_ns, step_ns=_STEP_NS, count=count)
