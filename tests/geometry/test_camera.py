"""The camera against its formulas, written out by hand with the ECD's calibration."""

import math

import numpy as np
import pytest

from cmaxslam_fbp.errors import CalibrationError
from cmaxslam_fbp.geometry.camera import Camera, davis240c, dvxplorer

FISHEYE = Camera(346, 260, 180.0, 181.0, 172.5, 130.25, (-0.02, 0.004, -0.003, 0.0005), "equidistant")
CAMERAS = {
    "davis240c": davis240c(),
    "dvxplorer": dvxplorer(),
    "fisheye": FISHEYE,
    "pinhole": Camera(640, 480, 500.0, 510.0, 300.0, 250.0),
}


@pytest.fixture(params=list(CAMERAS))
def camera(request):
    return CAMERAS[request.param]


def all_pixels(camera):
    rows, columns = np.mgrid[: camera.height, : camera.width]
    return np.stack([columns, rows], axis=-1).reshape(-1, 2).astype(float)


def brown_conrady(X, Y, Z):
    """The pixel of a point by Brown's formula and the numbers of the ECD's calib.txt."""
    x, y = X / Z, Y / Z
    r2 = x * x + y * y
    radial = 1 - 0.368436 * r2 + 0.150947 * r2 * r2
    p1, p2 = -0.000296, -0.000759
    xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    return 199.092 * xd + 132.192, 198.829 * yd + 110.713


def kannala_brandt(X, Y, Z):
    """The pixel of a point by the equidistant formula and the numbers of FISHEYE."""
    r = math.hypot(X / Z, Y / Z)
    theta = math.atan(r)
    theta_d = theta * (1 - 0.02 * theta**2 + 0.004 * theta**4 - 0.003 * theta**6 + 0.0005 * theta**8)
    return 180.0 * theta_d / r * X / Z + 172.5, 181.0 * theta_d / r * Y / Z + 130.25


POINTS = [(0.31, -0.22, 1.0), (-0.9, 0.5, 2.0), (0.02, 0.45, 0.8), (-0.5, -0.4, 1.0)]


@pytest.mark.parametrize("point", POINTS)
def test_plumb_bob_is_browns_formula(point):
    np.testing.assert_allclose(davis240c().project([point])[0], brown_conrady(*point), atol=1e-9)


@pytest.mark.parametrize("point", POINTS)
def test_equidistant_is_kannala_and_brandts_formula(point):
    np.testing.assert_allclose(FISHEYE.project([point])[0], kannala_brandt(*point), atol=1e-9)


def test_the_third_radial_coefficient_comes_last():
    camera = Camera(100, 100, 100.0, 100.0, 50.0, 50.0, (0.0, 0.0, 0.0, 0.0, 0.5))
    assert camera.project([[0.5, 0.0, 1.0]])[0] == pytest.approx([50 + 100 * 0.5 * (1 + 0.5 * 0.5**6), 50])


def test_the_axis_meets_the_principal_point_and_x_is_right_and_y_is_down(camera):
    centre = camera.project([[0.0, 0.0, 1.0]])[0]
    np.testing.assert_allclose(centre, [camera.cx, camera.cy], atol=1e-12)
    right, down = camera.project([[0.01, 0.0, 1.0], [0.0, 0.01, 1.0]]) - centre
    assert right == pytest.approx([0.01 * camera.fx, 0], abs=2e-3)
    assert down == pytest.approx([0, 0.01 * camera.fy], abs=2e-3)


def test_undistort_without_distortion_is_linear():
    camera = CAMERAS["pinhole"]
    assert camera.undistort([[300.0, 250.0], [800.0, 250.0], [300.0, 199.0]]) == pytest.approx(
        np.array([[0, 0], [1, 0], [0, -0.1]]), abs=1e-12
    )
    assert camera.matrix.tolist() == [[500, 0, 300], [0, 510, 250], [0, 0, 1]]


def test_every_pixel_survives_the_round_trip(camera):
    pixels = all_pixels(camera)
    points = camera.undistort(pixels)
    returned = camera.project(np.column_stack([points, np.ones(len(points))]))
    assert np.abs(returned - pixels).max() < 1e-6


def test_directions_survive_the_other_round_trip(camera):
    random = np.random.default_rng(0)
    points = random.uniform(-0.45, 0.45, (500, 2))
    pixels = camera.project(np.column_stack([points, np.ones(500)]))
    np.testing.assert_allclose(camera.undistort(pixels), points, atol=1e-9)


def test_projection_does_not_depend_on_the_length_of_a_direction(camera):
    direction = np.array([0.2, -0.3, 1.0])
    near, far = camera.project([direction, 7.5 * direction])
    np.testing.assert_allclose(near, far, atol=1e-10)


def test_bearings_are_unit_directions_of_their_own_pixels(camera):
    bearings = camera.bearings()
    assert bearings.shape == (camera.height, camera.width, 3)
    np.testing.assert_allclose(np.linalg.norm(bearings, axis=-1), 1, atol=1e-14)
    # The table is indexed [row, column]; its entry projects to the pixel (column, row).
    row, column = camera.height - 3, 5
    np.testing.assert_allclose(camera.project([bearings[row, column]])[0], [column, row], atol=1e-6)
    table = camera.undistorted_pixels()
    np.testing.assert_allclose(bearings[..., :2] / bearings[..., 2:], table, atol=1e-14)


def test_a_distortion_that_folds_the_image_is_refused():
    camera = Camera(240, 180, 199.0, 199.0, 120.0, 90.0, (-2.5, 0.0, 0.0, 0.0, 0.0))
    with pytest.raises(CalibrationError, match=r"cannot be inverted at pixel \(\d+, \d+\): check the coeff"):
        camera.undistorted_pixels()
    with pytest.raises(CalibrationError, match="cannot be inverted"):
        camera.bearings()


def test_corners_beyond_the_fold_of_a_barrel_are_not_seen():
    """`r (1 + k1 r^2)` rises up to `2/3 / sqrt(-3 k1)`; the corner is at 150/199: seen for k1 > -0.2607."""
    barrel = Camera(241, 181, 199.0, 199.0, 120.0, 90.0, (-0.25,))
    assert barrel.seen_pixels().all()
    radii = np.linalg.norm(barrel.undistorted_pixels(), axis=-1)
    assert 150 / 199 < radii.max() < 1 / np.sqrt(3 * 0.25)  # the branch before the fold
    folded = Camera(241, 181, 199.0, 199.0, 120.0, 90.0, (-0.27,))
    rows, columns = np.mgrid[:181, :241]
    off_axis = np.hypot(columns - 120, rows - 90) / 199
    np.testing.assert_array_equal(folded.seen_pixels(), off_axis < 2 / 3 / np.sqrt(3 * 0.27))
    assert np.linalg.norm(folded.undistorted_pixels(), axis=-1).max() < 1 / np.sqrt(3 * 0.27)


def test_a_fisheye_sees_up_to_80_degrees_off_its_axis():
    camera = Camera(640, 480, 120.0, 120.0, 320.0, 240.0, (), "equidistant")
    rows, columns = np.mgrid[:480, :640]
    angles_deg = np.degrees(np.hypot(columns - 320, rows - 240) / 120)
    np.testing.assert_array_equal(camera.seen_pixels(), angles_deg < 80)
    bearings = camera.bearings()[camera.seen_pixels()]
    assert np.degrees(np.arccos(bearings[:, 2])) == pytest.approx(angles_deg[camera.seen_pixels()], abs=1e-6)
    assert np.isfinite(camera.bearings()).all()
    assert np.isnan(camera.undistort([[0.0, 0.0]])).all()


def test_a_lens_that_sees_on_little_of_its_sensor_is_refused():
    with pytest.raises(CalibrationError, match="cannot be inverted"):
        Camera(640, 480, 60.0, 60.0, 320.0, 240.0, (), "equidistant").bearings()


def test_no_pixels_give_no_points(camera):
    assert camera.undistort(np.empty((0, 2))).shape == (0, 2)
    assert camera.project(np.empty((0, 3))).shape == (0, 2)


def test_missing_coefficients_are_zero_and_trailing_zeros_are_allowed():
    assert Camera(2, 2, 1, 1, 0, 0, (0.1, 0.2)).distortion == (0.1, 0.2, 0.0, 0.0, 0.0)
    assert Camera(2, 2, 1, 1, 0, 0, (0.1, 0, 0, 0, 0.2, 0, 0, 0)).distortion == (0.1, 0, 0, 0, 0.2)
    assert Camera(2, 2, 1, 1, 0, 0, (), "equidistant").distortion == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 180, 200.0, 200.0, 120.0, 90.0), "sensor size 0 x 180 is not positive"),
        ((240, -1, 200.0, 200.0, 120.0, 90.0), "sensor size 240 x -1 is not positive"),
        ((240, 180, 0.0, 200.0, 120.0, 90.0), "not those of a camera"),
        ((240, 180, 200.0, -200.0, 120.0, 90.0), "not those of a camera"),
        ((240, 180, 200.0, 200.0, float("nan"), 90.0), "not those of a camera"),
        ((240, 180, 200.0, 200.0, 120.0, 90.0, (float("inf"),)), "not those of a camera"),
        ((240, 180, 200.0, 200.0, 120.0, 90.0, (0, 0, 0, 0, 0, 0.1)), "at most 5 coefficients"),
        ((240, 180, 200.0, 200.0, 120.0, 90.0, (0, 0, 0, 0, 0.1), "equidistant"), "at most 4 coefficients"),
        ((240, 180, 200.0, 200.0, 120.0, 90.0, (), "magic"), "'magic' is not known; use one of plumb_bob, rational"),
    ],
)
def test_numbers_that_are_no_camera_are_refused(arguments, words):
    with pytest.raises(CalibrationError, match=words):
        Camera(*arguments)
