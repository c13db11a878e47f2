import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Turn

from cmaxslam_fbp.frontend.motion_models import ExactRotation, FirstOrderRotation, PlaneTranslation
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid, VelocityWarp
from cmaxslam_fbp.geometry.camera import davis240c

GRID = Grid((150, 200), 100.0, 107.0, 90.0, 87.0)
W = np.array([1.5, -2.5, 4.0])

# The models written out in float64, for points (N, 3) and times (N, 1).
EQUATIONS = {
    FirstOrderRotation: lambda p, dt, w: p + dt * np.cross(w, p),
    ExactRotation: lambda p, dt, w: Turn.from_rotvec(dt * w).apply(p),
    PlaneTranslation: lambda p, dt, w: p + dt * w,
}


def bins(model, packet, w):
    """The bin coordinates (N, 2) that the equations give."""
    q = EQUATIONS[model](np.column_stack([packet.x, packet.y, np.ones(len(packet))]), packet.dt_s[:, None], w)
    return np.column_stack([q[:, 1] / q[:, 2] * 90 + 87, q[:, 0] / q[:, 2] * 100 + 107])


def points_of(model, grid, packet, w):
    points = np.empty((len(packet), 2), np.float32)
    VelocityWarp(model(), grid, packet).points(w, points)
    return points


@pytest.mark.parametrize("model", EQUATIONS)
def test_points_are_those_of_the_equations(model):
    random = np.random.default_rng(0)
    x, y, dt_s = random.uniform([[-0.8], [-0.7], [-0.04]], [[0.6], [0.4], [0.04]], (3, 400)).astype(np.float32)
    packet = PacketEvents(x, y, dt_s)
    np.testing.assert_allclose(points_of(model, GRID, packet, W), bins(model, packet, W), atol=3e-4)
    unmoved = np.column_stack([y * 90 + 87, x * 100 + 107])
    np.testing.assert_allclose(points_of(model, GRID, packet, np.zeros(3)), unmoved, atol=3e-5)


def test_the_exact_rotation_holds_for_large_angles():
    packet = PacketEvents(*(np.array([value], np.float32) for value in (0.1, -0.2, 1.0)))
    w = np.array([0.3, 0.2, 2.4])
    np.testing.assert_allclose(points_of(ExactRotation, GRID, packet, w), bins(ExactRotation, packet, w), atol=1e-3)


def seen_from(rays, dt):
    """Events (N,) of rays (N, 3) in the camera's frame at `dt = t - t_ref`, and the grid of the plane itself."""
    x, y = (rays[:, :2] / rays[:, 2:]).T.astype(np.float32)
    return Grid((10, 10), 1.0, 0.0, 1.0, 0.0), PacketEvents(x, y, (-dt).astype(np.float32))


def test_a_rotating_camera_sees_its_events_aligned_by_minus_its_body_rate():
    omega = np.array([0.7, -1.1, 2.0])
    directions = np.random.default_rng(3).uniform([-0.4, -0.4, 1], [0.4, 0.4, 1], (50, 3))
    dt = np.linspace(-0.02, 0.02, 50)
    seen = Turn.from_rotvec(omega * dt[:, None]).inv().apply(directions)  # R(t)^T P with R(t_ref) = I
    points = points_of(ExactRotation, *seen_from(seen, dt), CAMERA_SIGN * omega)
    np.testing.assert_allclose(points[:, ::-1], directions[:, :2], atol=1e-6)


def test_a_moving_camera_sees_a_plane_at_unit_depth_aligned_by_minus_its_velocity():
    velocity = np.array([0.5, -0.3, 0.8])
    world = np.random.default_rng(4).uniform([-0.4, -0.4, 1], [0.4, 0.4, 1], (50, 3))
    dt = np.linspace(-0.02, 0.02, 50)
    points = points_of(PlaneTranslation, *seen_from(world - velocity * dt[:, None], dt), CAMERA_SIGN * velocity)
    np.testing.assert_allclose(points[:, ::-1], world[:, :2], atol=3e-4)  # the model is exact to first order


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
