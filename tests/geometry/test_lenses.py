"""The lens models against OpenCV, their formulas, and themselves there and back."""

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.camera import Camera

CAMERAS = {
    "four": Camera(320, 240, 250.0, 252.5, 159.0, 121.0, (-0.3, 0.12, 0.0004, -0.0007)),
    "five": Camera(320, 180, 258.0, 259.0, 157.0, 89.0, (-0.1, 0.05, 0.001, -0.002, 0.01)),
    "eight": Camera(
        320, 240, 165.0, 165.5, 160.0, 120.0, (0.6, 0.2, 3e-4, -5e-4, 0.01, 0.95, 0.4, 0.05), "rational_polynomial"
    ),
    "fold": Camera(320, 240, 200.0, 200.0, 160.0, 120.0, (-0.35, 0.15, 0.0003, -0.0005, -0.03)),
    "kb": Camera(320, 180, 261.0, 262.0, 161.0, 91.0, (-0.016, -0.006, 0.003, -0.001), "equidistant"),
    "kb wide": Camera(346, 260, 120.0, 121.0, 172.5, 130.25, (-0.02, 0.004, -0.003, 0.0005), "equidistant"),
    "fov": Camera(320, 240, 150.0, 150.5, 160.0, 120.0, (0.93,), "fov"),
    "omni": Camera(320, 240, 300.0, 300.5, 160.0, 120.0, (1.2, -0.1, 0.05, 1e-3, -1e-3), "omni"),
    "eucm": Camera(320, 240, 150.0, 150.5, 160.0, 120.0, (0.6, 1.1), "eucm"),
    "ds": Camera(320, 240, 100.0, 100.5, 160.0, 120.0, (-0.2, 0.6), "ds"),
}


@pytest.fixture(params=CAMERAS)
def camera(request):
    return CAMERAS[request.param]


def seen_pixels(camera):
    """Return the pixels that are seen (N, 2), and their points of the normalised plane."""
    rows, columns = np.nonzero(camera.seen_pixels())
    return np.column_stack([columns, rows]).astype(float), camera.undistorted_pixels()[rows, columns]


def rays(points):
    return np.column_stack([points, np.ones(len(points))])


def test_every_seen_pixel_survives_the_round_trip(camera):
    pixels, points = seen_pixels(camera)
    assert len(pixels) > 0.8 * camera.width * camera.height
    np.testing.assert_allclose(camera.project(rays(points)), pixels, atol=1e-9)


def test_directions_near_the_axis_survive_the_other_round_trip(camera):
    points = np.random.default_rng(0).uniform(-0.4, 0.4, (500, 2))
    np.testing.assert_allclose(camera.undistort(camera.project(rays(points))), points, atol=1e-10)


def test_projection_is_opencvs(camera):
    if camera.distortion_model not in ("plumb_bob", "rational_polynomial", "equidistant"):
        pytest.skip("OpenCV does not have it")
    points = np.random.default_rng(1).uniform(-0.45, 0.45, (500, 2))
    library = cv2.fisheye if camera.distortion_model == "equidistant" else cv2
    zero = np.zeros(3)
    there, _ = library.projectPoints(rays(points)[:, None], zero, zero, camera.matrix, np.array(camera.distortion))
    np.testing.assert_allclose(camera.project(rays(points)), there.reshape(-1, 2), atol=1e-9)


@pytest.mark.parametrize("name", ["four", "five", "eight", "kb", "kb wide"])
def test_the_inverse_is_opencvs_with_enough_iterations(name):
    camera = CAMERAS[name]
    pixels, points = seen_pixels(camera)
    library = cv2.fisheye if camera.distortion_model == "equidistant" else cv2
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-13)
    there = library.undistortPoints(pixels[:, None], camera.matrix, np.array(camera.distortion), criteria=criteria)
    np.testing.assert_allclose(points, there.reshape(-1, 2), atol=1e-10)


def test_omni_is_opencvs_projection_of_points_on_the_sphere():
    """Mei: a pinhole camera that looks at the unit sphere from `xi` behind its centre."""
    camera = CAMERAS["omni"]
    points = np.random.default_rng(2).uniform(-1, 1, (500, 2))
    sphere = rays(points) / np.linalg.norm(rays(points), axis=1, keepdims=True)
    zero = np.zeros(3)
    shifted = (sphere + np.array([0, 0, 1.2]))[:, None]
    there, _ = cv2.projectPoints(shifted, zero, zero, camera.matrix, np.array(camera.distortion[1:]))
    np.testing.assert_allclose(camera.project(rays(points)), there.reshape(-1, 2), atol=1e-9)


def test_the_sphere_models_are_special_cases_of_each_other():
    """A double sphere of `xi = 0` is an EUCM of `beta = 1`, one of `alpha = 0` Mei's; EUCM of `alpha = 0` is none."""
    points = np.random.default_rng(3).uniform(-1, 1, (500, 2))

    def project(coefficients, model):
        return Camera(640, 480, 200.0, 200.0, 320.0, 240.0, coefficients, model).project(rays(points))

    np.testing.assert_allclose(project((0.0, 0.6), "ds"), project((0.6, 1.0), "eucm"), atol=1e-10)
    np.testing.assert_allclose(project((0.7, 0.0), "ds"), project((0.7,), "omni"), atol=1e-10)
    np.testing.assert_allclose(project((0.0, 1.3), "eucm"), project((), "plumb_bob"), atol=1e-10)


def test_fov_is_devernays_formula():
    camera = CAMERAS["fov"]
    x, y = 0.7, -0.4
    r = np.hypot(x, y)
    bent = np.arctan(2 * r * np.tan(0.93 / 2)) / 0.93
    wanted = [160 + 150 * bent / r * x, 120 + 150.5 * bent / r * y]
    np.testing.assert_allclose(camera.project([[x, y, 1.0]])[0], wanted, atol=1e-10)


def test_a_camera_without_distortion_is_the_same_near_the_axis(camera):
    near = np.array([[1e-5, 0.0, 1.0], [0.0, 1e-5, 1.0]])
    np.testing.assert_allclose(camera.without_distortion().project(near), camera.project(near), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "coefficients"),
    [("omni", (-1.0,)), ("ds", (0.5, 7.0)), ("eucm", (40.0, 30.0)), ("fov", (np.pi,)), ("equidistant", (-9.0,))],
)
def test_coefficients_of_no_lens_are_refused_without_a_warning(model, coefficients):
    camera = Camera(640, 480, 120.0, 120.0, 320.0, 240.0, coefficients, model)
    with pytest.raises(CalibrationError, match="cannot be inverted"):
        camera.bearings()
