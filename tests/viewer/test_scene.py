import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.viewer.scene import Scene, joined, sphere_surface, tube_surface


def test_the_sphere_carries_the_panorama_where_it_belongs_and_faces_inwards():
    surface = sphere_surface(200, 100)
    np.testing.assert_allclose(np.linalg.norm(surface.vertices, axis=1), 1)
    corners = surface.vertices[surface.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("ij,ij->i", normals, corners.mean(axis=1)) <= 1e-12).all()
    # Away from the seam and the poles, a vertex has the pixel that the projection gives it.
    middle = (surface.uvs[..., 0] > 0.1) & (surface.uvs[..., 0] < 0.9) & (np.abs(surface.uvs[..., 1] - 0.5) < 0.4)
    pixels = surface.uvs[middle] * (200, 100) - 0.5
    np.testing.assert_allclose(Equirectangular(200, 100).project(corners[middle]), pixels, atol=1e-9)


def test_a_tube_keeps_its_distance_from_the_line_in_any_direction():
    for axis in range(3):
        points = np.linspace(0, 1, 20)[:, None] * np.eye(3)[axis] + 0.01
        surface = tube_surface(points, 0.05)
        away = np.delete(surface.vertices, axis, axis=1) - 0.01
        np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.05)
        edges = np.linalg.norm(np.diff(surface.vertices[surface.triangles], axis=1), axis=-1)
        assert edges.max() < 0.08  # rings are not twisted against each other


def test_points_that_do_not_move_make_no_tube():
    assert len(tube_surface(np.ones((5, 3)), 0.1).triangles) == 0
    both = joined([tube_surface(np.ones((5, 3)), 0.1), tube_surface(np.eye(3), 0.1)])
    assert both.triangles.max() == len(both.vertices) - 1


@pytest.fixture
def trajectory():
    t_ns = np.arange(0, 1_000_000_001, 10_000_000)
    return RotationTrajectory.from_rotations(
        t_ns, Rotation.from_euler("y", np.linspace(0, 90, len(t_ns))[:, None], degrees=True)
    )


def test_the_frustum_turns_with_the_camera(trajectory):
    border = np.array([[-0.3, -0.2, 1], [0.3, -0.2, 1], [0.3, 0.2, 1], [-0.3, 0.2, 1]])
    scene = Scene(np.zeros((32, 64, 3), np.uint8), trajectory, border / np.linalg.norm(border, axis=1, keepdims=True))
    first, last = scene.frustum(0.0).vertices.mean(axis=0), scene.frustum(1.0).vertices.mean(axis=0)
    assert first[2] > 0.3 > abs(first[0])
    assert last[0] > 0.3 > abs(last[2])
    np.testing.assert_allclose(scene.frustum(7.0).vertices, scene.frustum(1.0).vertices)


def test_without_a_calibration_the_axis_is_shown(trajectory):
    surface = Scene(np.zeros((32, 64, 3), np.uint8), trajectory, None).frustum(0.0)
    np.testing.assert_allclose(surface.vertices[:, 2].max(), 0.99)
