"""The equirectangular projection: conventions, round trips, seam, poles, derivatives, compiled versions."""

import numpy as np
import pytest
from equirectangular_jacobian import rotation_jacobian
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.compiling import CONTRACTED, compiled
from cmaxslam_fbp.geometry import equirectangular_kernels as kernels
from cmaxslam_fbp.geometry.equirectangular import MIN_COS_LATITUDE, Equirectangular

PANORAMA = Equirectangular(1024, 512)
FOCAL = 1024 / (2 * np.pi)

longitudes = st.floats(-np.pi, np.pi)
latitudes = st.floats(-1.5, 1.5)


def direction(longitude, latitude):
    return np.array(
        [np.cos(latitude) * np.sin(longitude), np.sin(latitude), np.cos(latitude) * np.cos(longitude)]
    )  # fmt: skip


def all_around(count=20_000, seed=0):
    directions = np.random.default_rng(seed).normal(size=(count, 3))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def around_the_seam(difference_px, width=1024):
    return (difference_px + width / 2) % width - width / 2


@pytest.mark.parametrize(
    ("name", "P", "pixel"),
    [
        ("forward", [0, 0, 1], [512, 256]),
        ("right", [1, 0, 0], [768, 256]),
        ("left", [-1, 0, 0], [256, 256]),
        ("down", [0, 1, 0], [512, 512]),
        ("up", [0, -1, 0], [512, 0]),
        ("backward", [0, 0, -1], [0, 256]),
        ("forward and down", [0, 1, 1], [512, 384]),
        ("forward and right", [1, 0, 1], [640, 256]),
    ],
)
def test_the_axes_are_where_a_camera_at_rest_sees_them(name, P, pixel):
    np.testing.assert_allclose(PANORAMA.project(P), pixel, rtol=0, atol=1e-12)
    np.testing.assert_allclose(PANORAMA.project(3.7 * np.array(P)), pixel, rtol=0, atol=1e-12)


def test_the_equations_are_those_of_the_paper():
    P = all_around()
    X, Y, Z = P.T
    found = PANORAMA.project(P)
    np.testing.assert_allclose(found[:, 0], 512 + FOCAL * np.arctan2(X, Z), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], 256 + FOCAL * np.arcsin(Y), atol=1e-9)
    assert PANORAMA.focal_px == FOCAL


@given(longitudes, latitudes, st.sampled_from([(1024, 512), (1000, 500), (333, 77)]))
def test_directions_survive_the_round_trip(longitude, latitude, size):
    panorama = Equirectangular(*size)
    P = direction(longitude, latitude)
    pixel = panorama.project(P)
    assert 0 <= pixel[0] < size[0]
    np.testing.assert_allclose(panorama.unproject(pixel), P, atol=1e-12)


@given(st.floats(0, 1024, exclude_max=True), st.floats(1, 511), st.integers(-2, 2))
def test_pixels_survive_the_round_trip_and_columns_wrap(x, y, turns):
    found = PANORAMA.project(PANORAMA.unproject([x + 1024 * turns, y]))
    np.testing.assert_allclose(around_the_seam(found[0] - x), 0, atol=1e-9)
    np.testing.assert_allclose(found[1], y, atol=1e-9)


@pytest.mark.parametrize("width", [1024, 1000, 333, 7])
def test_columns_are_in_the_half_open_range_at_the_seam(width):
    panorama = Equirectangular(width, 512)
    for X in (0.0, -0.0, 1e-300, -1e-300, 1e-16, -1e-16, 1e-9, -1e-9):
        x = panorama.project([X, 0.3, -1.0])[0]
        assert 0 <= x < width
        assert abs(around_the_seam(x - X * panorama.focal_px * -1, width)) < 1e-9


def test_left_and_right_of_the_seam_are_at_the_two_ends():
    right, left = PANORAMA.project([[1e-3, 0, -1], [-1e-3, 0, -1]])
    assert right[0] == pytest.approx(1024 - FOCAL * 1e-3, abs=1e-6)
    assert left[0] == pytest.approx(FOCAL * 1e-3, abs=1e-6)


def differences(function, at, h):
    columns = [(function(at + h * e) - function(at - h * e)) / (2 * h) for e in np.eye(3)]
    return np.stack(columns, axis=-1)


def wrapped(difference_px):
    difference_px[..., 0] = around_the_seam(difference_px[..., 0])
    return difference_px


@given(longitudes, latitudes, st.floats(0.3, 3))
def test_the_rotation_jacobian_is_the_derivative_of_a_turn_on_the_left(longitude, latitude, length):
    P = length * direction(longitude, latitude)
    centre = PANORAMA.project(P)
    numeric = differences(
        lambda delta: wrapped(PANORAMA.project(Rotation.from_rotvec(delta).apply(P)) - centre),
        np.zeros(3),
        1e-5 * np.cos(latitude),
    )
    np.testing.assert_allclose(rotation_jacobian(PANORAMA, P), numeric, rtol=0, atol=1e-8 * FOCAL / np.cos(latitude))


@pytest.mark.parametrize("Y", [1.0, -1.0])
def test_at_a_pole_everything_is_finite(Y):
    P = np.array([0, Y, 0])
    assert PANORAMA.project(P).tolist() == [512, 256 + 256 * Y]
    np.testing.assert_array_equal(rotation_jacobian(PANORAMA, P), [[0, FOCAL, 0], [0, 0, 0]])


@given(longitudes, st.floats(-20, -0.01), st.sampled_from([-1.0, 1.0]))
def test_near_a_pole_derivatives_are_bounded(longitude, exponent, Y):
    level = 10.0**exponent
    P = np.array([level * np.sin(longitude), Y * np.sqrt(1 - level**2), level * np.cos(longitude)])
    J = rotation_jacobian(PANORAMA, P)
    assert np.abs(J[0]).max() <= FOCAL / MIN_COS_LATITUDE * (1 + 1e-9)
    assert np.abs(J[1]).max() <= FOCAL * (1 + 1e-9)
    exact = -FOCAL * P[1] * np.array([np.sin(longitude), 0, np.cos(longitude)]) / level
    damping = min(level / MIN_COS_LATITUDE, 1) ** 2
    np.testing.assert_allclose(J[0], damping * exact + [0, FOCAL, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3)])
def test_leading_dimensions_are_kept(shape):
    P = np.broadcast_to([0.1, 0.2, 0.9], (*shape, 3))
    assert PANORAMA.project(P).shape == (*shape, 2)
    assert PANORAMA.unproject(PANORAMA.project(P)).shape == (*shape, 3)


def test_an_empty_panorama_is_refused():
    with pytest.raises(ValueError, match="0 x 512 is not positive"):
        Equirectangular(0, 512)


# --- compiled versions

CORNERS = np.array(
    [[x, y, z] for x in (0, 1, -1, 1e-5) for y in (0, 1, -1, 1e-5) for z in (0, 1, -1, -1e-5) if (x, y, z) != (0, 0, 0)]
)
NEAR_POLES = all_around(2000, 1) * [1e-4, 1, 1e-4]


@compiled(fastmath=CONTRACTED)
def project_each(P, width, height, focal, pixels):
    for n in range(len(P)):
        pixels[n, 0], pixels[n, 1] = kernels.project_fast(P[n, 0], P[n, 1], P[n, 2], width, height, focal)


def project_all_fast(P, panorama):
    pixels = np.empty((len(P), 2), P.dtype)
    project_each(P, *(P.dtype.type(size) for size in (panorama.width, panorama.height, panorama.focal_px)), pixels)
    return pixels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fast_projection_is_within_a_ten_thousandth_of_a_pixel(dtype):
    P = np.concatenate([all_around(200_000), 3 * all_around(1000), CORNERS, NEAR_POLES]).astype(dtype)
    found = project_all_fast(P, PANORAMA)
    assert found.dtype == dtype
    assert (found[:, 0] >= 0).all()
    assert (found[:, 0] < 1024).all()
    assert np.abs(wrapped(found - PANORAMA.project(P))).max() < (1e-4 if dtype == np.float32 else 2e-5)


def test_the_fast_projection_is_exact_on_the_axes():
    P = np.array([[0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, -1]], np.float32)
    expected = [[512, 256], [768, 256], [256, 256], [512, 512], [512, 0], [0, 256]]
    assert project_all_fast(P, PANORAMA).tolist() == expected


@pytest.mark.parametrize("width", [1024, 1000, 333, 336])
def test_compiled_columns_are_in_the_half_open_range_at_the_seam(width):
    f32 = np.float32
    size = f32(width), f32(512), f32(width / (2 * np.pi))
    for X in (0.0, -0.0, 1e-30, -1e-30, 1e-9, -1e-9, 1e-7, -1e-7):
        u, _ = kernels.project_fast(f32(X), f32(0.3), f32(-1), *size)
        assert 0 <= u < width
        assert abs(around_the_seam(u, width)) < 1e-4


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-7)])
def test_the_gradient_of_a_turn_is_the_transposed_jacobian(dtype, tolerance):
    """The limit at the poles is a float32 constant in both types."""
    P = np.concatenate([all_around(300), CORNERS, NEAR_POLES[:100]]).astype(dtype)
    g = np.random.default_rng(2).normal(size=(len(P), 2)).astype(dtype)
    found = np.array([kernels.rotation_gradient(*p, dtype(FOCAL), *each) for p, each in zip(P, g, strict=True)])
    J = rotation_jacobian(PANORAMA, P)
    expected = np.einsum("nij,ni->nj", J, g.astype(float))
    size = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(g, axis=1)
    assert (np.abs(found - expected).max(axis=1) / size).max() < tolerance


def test_float32_stays_float32():
    arguments = [np.float32(v) for v in (0.1, 0.2, 0.9, 1024, 512, FOCAL)]
    kernels.project_fast(*arguments)
    kernels.rotation_gradient(*arguments)
    for function in (kernels.project_fast, kernels.rotation_gradient):
        (overload,) = [o for o in function.overloads.values() if {str(t) for t in o.signature.args} == {"float32"}]
        assert {str(t) for t in overload.signature.return_type.types} == {"float32"}
