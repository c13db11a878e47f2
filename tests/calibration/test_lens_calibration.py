"""Conversion of lens models, calibration of a whole recording, and what is not observed."""

from dataclasses import replace

import numpy as np
import pytest

from cmaxslam_fbp.calibration.deviations import conjugate_gradients
from cmaxslam_fbp.calibration.field_scan import middle_camera
from cmaxslam_fbp.calibration.lens_calibration import calibrate_lens
from cmaxslam_fbp.calibration.lens_conversion import convert_lens
from cmaxslam_fbp.calibration.lens_parameters import LensParameters, parameter_values
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


def test_conjugate_gradients_solve(random):
    A = random.normal(size=(12, 12))
    H = A @ A.T + 5 * np.eye(12)
    b = random.normal(size=12)
    np.testing.assert_allclose(H @ conjugate_gradients(lambda v: H @ v, b), b, atol=0.03 * np.linalg.norm(b))


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
