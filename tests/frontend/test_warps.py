import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid, VelocityWarp
from cmaxslam_fbp.geometry.camera import davis240c

MODELS = ["rotation", "exact_rotation", "translation"]
W = np.array([1.5, -2.5, 4.0])


def moved(model, x, y, dt, w):
    """The warps written out in float64: normalised coordinates (N, 2)."""
    p = np.column_stack([x, y, np.ones(len(x))]).astype(float)
    dt = np.asarray(dt, float)[:, None]
    if model == "rotation":
        q = p + dt * np.cross(w, p)
    elif model == "exact_rotation":
        q = Rotation.from_rotvec(dt * w).apply(p)
    else:
        q = p + dt * w
    return q[:, :2] / q[:, 2:]


@pytest.fixture
def packet():
    random = np.random.default_rng(0)
    x, y = random.uniform(-0.8, 0.6, 400), random.uniform(-0.7, 0.4, 400)
    return x.astype(np.float32), y.astype(np.float32), random.uniform(-0.04, 0.04, 400).astype(np.float32)


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


GRID = Grid((150, 200), 100.0, 107.0, 90.0, 87.0)


def bins(model, packet, w):
    u, v = moved(model, *packet, w).T
    return np.column_stack([v * 90 + 87, u * 100 + 107])


def test_points_are_those_of_the_equations(model, packet):
    warp = VelocityWarp(model, GRID, *packet)
    points = np.empty((400, 2), np.float32)
    warp.points(W, points)
    np.testing.assert_allclose(points, bins(model, packet, W), atol=3e-4)
    warp.points(np.zeros(3), points)
    np.testing.assert_allclose(points, np.column_stack([packet[1] * 90 + 87, packet[0] * 100 + 107]), atol=1e-4)


def test_the_exact_rotation_holds_for_large_angles():
    packet = tuple(np.array([value], np.float32) for value in (0.1, -0.2, 1.0))
    w = np.array([0.3, 0.2, 2.4])
    points = np.empty((1, 2), np.float32)
    VelocityWarp("exact_rotation", GRID, *packet).points(w, points)
    np.testing.assert_allclose(points, bins("exact_rotation", packet, w), atol=1e-3)


@pytest.mark.parametrize("w", [W, np.zeros(3)], ids=["moving", "zero"])
def test_tangents_and_pullbacks_are_the_derivatives(model, packet, w):
    warp = VelocityWarp(model, GRID, *packet)
    points_bar = np.random.default_rng(1).normal(size=(400, 2)).astype(np.float32)
    gradient = warp.pullback(w, points_bar)
    tangent = np.empty((400, 2), np.float32)
    h = 1e-5
    for axis in range(3):
        step = h * np.eye(3)[axis]
        expected = (bins(model, packet, w + step) - bins(model, packet, w - step)) / (2 * h)
        warp.tangent(w, axis, tangent)
        np.testing.assert_allclose(tangent, expected, atol=2e-5 * np.abs(expected).max())
        np.testing.assert_allclose(gradient[axis], (points_bar * expected).sum(), rtol=1e-4)


@pytest.mark.parametrize("w", [0.1 * W, np.zeros(3)], ids=["moving", "zero"])
def test_the_curvature_is_the_derivative_of_the_gradient(model, packet, w):
    """Of a made-up quadratic function of the points: `sum g.(p - p0) + (p - p0)^T C (p - p0) / 2`."""
    random = np.random.default_rng(2)
    g, c = random.normal(size=(400, 2)), random.normal(size=(400, 3))
    C = np.stack([c[:, [0, 1]], c[:, [1, 2]]], axis=1)
    p0 = bins(model, packet, w)

    def gradient(at):
        h = 1e-5
        J = np.stack(
            [(bins(model, packet, at + h * e) - bins(model, packet, at - h * e)) / (2 * h) for e in np.eye(3)], axis=2
        )
        bar = g + np.einsum("nij,nj->ni", C, bins(model, packet, at) - p0)
        return np.einsum("ni,nib->b", bar, J)

    h = 1e-3
    expected = np.stack([(gradient(w + h * e) - gradient(w - h * e)) / (2 * h) for e in np.eye(3)], axis=1)
    warp = VelocityWarp(model, GRID, *packet)
    actual = warp.pullback_curvature(w, g.astype(np.float32), c.astype(np.float32))
    # The exact rotation leaves out terms of higher order in the angle.
    tolerance = 2e-3 if model == "exact_rotation" else 3e-4
    np.testing.assert_allclose(actual, expected, atol=tolerance * np.abs(expected).max())


def test_a_rotating_camera_sees_its_events_aligned_by_minus_its_body_rate():
    omega = np.array([0.7, -1.1, 2.0])
    directions = np.random.default_rng(3).uniform([-0.4, -0.4, 1], [0.4, 0.4, 1], (50, 3))
    dt = np.linspace(-0.02, 0.02, 50)  # t - t_ref
    seen = Rotation.from_rotvec(omega * dt[:, None]).inv().apply(directions)  # R(t)^T P with R(t_ref) = I
    x, y = (seen[:, :2] / seen[:, 2:]).T.astype(np.float32)
    warp = VelocityWarp("exact_rotation", Grid((10, 10), 1.0, 0.0, 1.0, 0.0), x, y, (-dt).astype(np.float32))
    points = np.empty((50, 2), np.float32)
    warp.points(CAMERA_SIGN * omega, points)
    np.testing.assert_allclose(points[:, ::-1], directions[:, :2], atol=1e-6)


def test_a_moving_camera_sees_a_plane_at_unit_depth_aligned_by_minus_its_velocity():
    velocity = np.array([0.5, -0.3, 0.8])
    world = np.random.default_rng(4).uniform([-0.4, -0.4, 1], [0.4, 0.4, 1], (50, 3))
    dt = np.linspace(-0.02, 0.02, 50)
    seen = world - velocity * dt[:, None]
    x, y = (seen[:, :2] / seen[:, 2:]).T.astype(np.float32)
    # At unit depth the model is exact to first order.
    warp = VelocityWarp("translation", Grid((10, 10), 1.0, 0.0, 1.0, 0.0), x, y, (-dt).astype(np.float32))
    points = np.empty((50, 2), np.float32)
    warp.points(CAMERA_SIGN * velocity, points)
    np.testing.assert_allclose(points[:, ::-1], world[:, :2], atol=3e-4)


def test_the_paper_s_grid_is_centred_on_the_mean_of_the_undistorted_sensor():
    camera = davis240c()
    grid = Grid.normalised(camera)
    assert grid.shape == (150, 200)
    mean_u, mean_v = camera.undistorted_pixels().reshape(-1, 2).mean(axis=0)
    assert mean_u * grid.scale_x + grid.offset_x == pytest.approx(99.5)
    assert mean_v * grid.scale_y + grid.offset_y == pytest.approx(74.5)
    assert grid.scale_x == grid.scale_y == 100


def test_the_sensor_grid_has_the_pixels_of_an_ideal_camera():
    camera = davis240c()
    grid = Grid.sensor(camera)
    assert grid.shape == (180, 240)
    assert 0.25 * grid.scale_x + grid.offset_x == pytest.approx(0.25 * 199.092 + 132.192)
    assert 0.25 * grid.scale_y + grid.offset_y == pytest.approx(0.25 * 198.829 + 110.713)


def test_a_coarser_bin_covers_whole_bins_of_the_finer_grid():
    coarse = GRID.coarser(4)
    assert coarse.shape == (38, 50)
    for column in (-0.5, 3.5, 7.5):  # outer edges of fine bins, in fine coordinates
        u = (column - GRID.offset_x) / GRID.scale_x
        assert u * coarse.scale_x + coarse.offset_x == pytest.approx((column + 0.5) / 4 - 0.5)
