import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.simulation import SensorSettings
from cmaxslam_fbp.simulation.planar_simulator import make_plane_map
from cmaxslam_fbp.simulation.sensor import EventSensor

SIZE, FOCAL = 1601, 400.0  # two metres to every side of a plane at one metre


def plane_image(level, depth_m):
    """An image of the plane whose log intensity is `level(X, Y)` in metres."""
    grid = (np.arange(SIZE) - (SIZE - 1) / 2) / FOCAL * depth_m
    return np.exp(level(grid[None, :], grid[:, None])).astype(np.float32)


def test_the_view_is_the_plane_where_the_pixels_rays_meet_it_from_any_pose():
    camera, depth_m = davis240c(), 2.5
    waves = np.random.default_rng(0).normal(0, 2.0, (5, 2))

    def level(x, y):
        return sum(np.sin(a * x + b * y) for a, b in waves) / 3

    sensor = EventSensor(camera, make_plane_map(plane_image(level, depth_m), FOCAL, depth_m, 0.0), SensorSettings(), 0)
    rays = np.concatenate([camera.undistorted_pixels(), np.ones((180, 240, 1))], axis=-1)
    poses = [
        ([0.0, 0, 0], [0.0, 0, 0]),
        ([0.0, 0, 0], [0.9, -0.6, 0.4]),
        ([0.1, -0.15, 0.5], [-0.5, 0.3, -0.4]),
        ([0.0, 0, 2.0], [0.0, 0, 1.2]),
    ]
    for vector, position in poses:
        rotation = Rotation.from_rotvec(vector).as_matrix()
        directions = rays @ rotation.T
        points = position + (depth_m - position[2]) / directions[..., 2:] * directions
        truth = level(points[..., 0], points[..., 1])
        seen = sensor.render(rotation, None, np.array(position))
        assert np.abs(points[..., :2]).max() < 2 * depth_m
        assert np.abs(seen - truth).max() < 2e-3
        assert np.ptp(truth) > 0.5


def test_without_a_position_the_camera_is_at_the_origin():
    image = plane_image(lambda x, y: np.sin(3 * x) + y, 1.0)
    sensor = EventSensor(davis240c(), make_plane_map(image, FOCAL, 1.0, 0.0), SensorSettings(), 0)
    np.testing.assert_array_equal(sensor.render(np.eye(3)), sensor.render(np.eye(3), None, np.zeros(3)))


def test_the_blur_is_of_the_intensity_before_the_logarithm():
    image = np.full((101, 101), 0.25, np.float32)
    image[:, 51:] = 1.0
    plane = make_plane_map(image, 40.0, 1.0, 2.0)
    assert plane.texels.shape == (1, 101, 101)
    from scipy.special import ndtr

    expected = np.log(0.25 + 0.75 * ndtr((np.arange(101) - 50.5) / 2.0))
    np.testing.assert_allclose(plane.texels[0, 50], expected, atol=0.01)
    assert (plane.texels[0, :, :40] == plane.texels[0, 0, 0]).all()
