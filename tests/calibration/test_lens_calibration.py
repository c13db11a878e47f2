"""Conversion of lens models, calibration of a whole recording, and what is not observed."""

from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp.calibration.deviations import inverse_block
from cmaxslam_fbp.calibration.field_scan import convert_lens, middle_camera
from cmaxslam_fbp.calibration.lens_calibration import calibrate_lens
from cmaxslam_fbp.calibration.lens_objective import LensState
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
from cmaxslam_fbp.calibration.lens_refinement import LensStage
from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.geometry.camera import davis240c


def test_a_lens_survives_the_change_of_its_model():
    camera = davis240c()
    fisheye = convert_lens(camera, "equidistant")
    rays = camera.bearings()[::20, ::20].reshape(-1, 3)
    assert np.median(np.abs(fisheye.project(rays) - camera.project(rays))) < 0.1
    back = convert_lens(fisheye, "plumb_bob")
    assert back.fx == pytest.approx(camera.fx, rel=0.01)
    assert back.distortion[0] == pytest.approx(camera.distortion[0], abs=0.03)


def test_parameters_make_the_camera_that_they_were_taken_from():
    parameters = LensParameters.of(davis240c(), "plumb_bob")
    again = parameters.camera(parameter_values(davis240c(), parameters.names))
    np.testing.assert_allclose(
        parameter_values(again, parameters.names), parameter_values(davis240c(), parameters.names)
    )
    held = parameters.holding(parameters.priors, ("focal", "k2"))
    assert held.names == ("aspect", "cx", "cy", "k1", "p1", "p2")
    assert held.camera(held.priors) == parameters.camera(parameters.priors)


def test_names_that_a_lens_does_not_have_are_refused():
    with pytest.raises(CalibrationError, match="has no parameter k9; it has focal, aspect, cx, cy"):
        LensParameters.of(middle_camera(SensorSize(120, 90), 100.0), "equidistant", ["k9"])
    with pytest.raises(CalibrationError, match="no lens model 'omni'"):
        LensParameters.of(davis240c(), "omni")


def test_a_block_of_an_inverse_comes_from_products(random):
    A = random.normal(size=(40, 40))
    H, units = A @ A.T / 40 + np.eye(40), np.eye(40)[:, -3:]
    found = inverse_block(lambda v: H @ v, units)
    np.testing.assert_allclose(found, np.linalg.inv(H)[-3:, -3:], rtol=0.01, atol=0.002)


def test_curvatures_below_the_error_of_the_products_count_as_that_error():
    """The error shows where `H` fails to be symmetric: 0.01 here, and a curvature that is zero but by chance."""
    H = np.diag([1.0, 1.0, 1.0, 1e-9])
    H[2, 3] += 0.02
    variances = np.diag(inverse_block(lambda v: H @ v, np.eye(4)[:, -2:]))
    assert variances[0] == pytest.approx(1, rel=0.02)
    assert variances[1] == pytest.approx(100, rel=0.02)


def test_without_curvature_nothing_is_known():
    H = np.diag([1.0, 2.0, 4.0, -0.5])
    variances = np.diag(inverse_block(lambda v: H @ v, np.eye(4)[:, -2:]))
    assert variances[0] == pytest.approx(0.25)
    assert variances[1] > 1e20


def test_steps_move_events_by_pixels_whatever_the_direction(turning, few):
    """The focal length, and a principal point that the camera's turn makes up for: steps of very different length."""
    parameters = LensParameters.of(turning.camera, "plumb_bob")
    values = parameter_values(turning.camera, parameters.names)
    objective = LensStage(1.0, 1.0, 1).objective(few, parameters, LensState(turning.spline, values))
    lengths = []
    for direction in np.eye(objective.parameter_count)[-objective.lens_count :][:3]:
        step = objective.step_of(direction, 1.0)
        lengths.append(step)
        assert objective.step_of(direction, 2.0) == pytest.approx(2 * step)
        assert objective.step_of(2 * direction, 1.0) == pytest.approx(step / 2, rel=0.2)
        places = []
        for way in (step, -step):
            objective(way * direction)
            places.append(objective._points.copy())
        moved = np.sqrt(np.square(places[0] - places[1]).sum(axis=1).mean())
        assert moved == pytest.approx(2.0, rel=0.1)
    assert max(lengths) > 3 * min(lengths)


def test_a_wrong_lens_is_put_right(turning):
    camera = turning.camera
    wrong = replace(camera, fx=camera.fx * 1.05, fy=camera.fy * 1.05, cx=61.0, cy=46.0, distortion=(-0.2, 0.05))
    found = calibrate_lens(turning.passages, wrong, turning.spline, "plumb_bob")
    assert found.after.contrast > found.before.contrast
    assert found.camera.fx == pytest.approx(camera.fx, rel=0.005)
    assert (found.camera.cx, found.camera.cy) == pytest.approx((camera.cx, camera.cy), abs=0.4)
    off = parameter_values(found.camera, found.names) - parameter_values(camera, found.names)
    assert all(found.observed)
    assert (np.abs(off) < 2 * found.deviations).all()
    known = dict(zip(found.names, found.deviations, strict=True))
    assert known["focal"] < 0.02
    assert max(known["cx"], known["cy"]) < 1.5
