import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.simulation.scenes import FLAT_SCENES, SCENES
from cmaxslam_fbp.simulation.scenes.images import check_panorama, fit_plane_image, load_panorama, load_plane_image
from cmaxslam_fbp.simulation.scenes.patches import flat_patch, tangent_axes, tangent_patch
from cmaxslam_fbp.simulation.scenes.shapes import polygon_distance


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_are_positive_seeded_panoramas(scene):
    panorama = SCENES[scene](512, 3)
    assert panorama.shape == (256, 512)
    assert panorama.dtype == np.float32
    assert panorama.min() > 0
    np.testing.assert_array_equal(panorama, SCENES[scene](512, 3))
    assert np.abs(panorama - SCENES[scene](512, 4)).max() > 0.1


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_have_no_seam_and_no_pole(scene):
    panorama = np.log(SCENES[scene](1024, 1))
    steps = np.abs(np.diff(panorama, axis=1))
    seam = np.abs(panorama[:, 0] - panorama[:, -1])
    assert seam.mean() < 1.5 * steps.mean(axis=0).max()
    assert seam.mean() > 0.1 * steps.mean()
    # Row 0 is the pole, one point: all its pixels agree, and the row below nearly does.
    assert np.ptp(panorama[0]) < 1e-4
    assert steps[1].mean() < steps[256].mean() + 0.02


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_look_alike_at_all_resolutions(scene):
    large, small = SCENES[scene](1536, 2), SCENES[scene](768, 2)
    reduced = large[::2, ::2]
    assert np.corrcoef(reduced[48:-48].ravel(), small[48:-48].ravel())[0, 1] > 0.9


def test_shapes_are_sparse_and_rocks_are_dense():
    flat = {name: (np.abs(np.diff(np.log(draw(1024, 0)), axis=1)) < 1e-3).mean() for name, draw in SCENES.items()}
    assert flat["shapes"] > 0.85
    assert flat["poster"] < 0.1


@pytest.mark.parametrize("scene", FLAT_SCENES)
def test_flat_scenes_are_positive_and_seeded_and_look_alike_at_all_resolutions(scene):
    draw = FLAT_SCENES[scene]
    image = draw(401, 150.0, 3)
    assert image.shape == (401, 401)
    assert image.dtype == np.float32
    assert image.min() > 0
    np.testing.assert_array_equal(image, draw(401, 150.0, 3))
    assert np.abs(image - draw(401, 150.0, 4)).max() > 0.1
    finer = draw(1203, 450.0, 3)
    assert np.corrcoef(finer[1::3, 1::3].ravel(), image.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("scene", FLAT_SCENES)
def test_flat_scenes_are_about_as_busy_as_their_panoramas(scene):
    focal = 1536 / (2 * np.pi)
    around = np.log(SCENES[scene](1536, 1))[256:512]
    flat = np.log(FLAT_SCENES[scene](701, focal, 1))
    changes = [np.abs(np.diff(levels, axis=0)).mean() for levels in (around, flat)]
    assert 0.6 < changes[1] / changes[0] < 1.6
    # And everywhere: no quarter is empty.
    quarters = [np.abs(np.diff(flat[i : i + 350, j : j + 350], axis=0)).mean() for i in (0, 350) for j in (0, 350)]
    assert min(quarters) > 0.3 * changes[1]


def test_a_flat_patch_holds_its_disc_and_knows_where_it_is():
    centre = np.array([0.7, -0.9])
    patch = flat_patch(201, 90.0, centre, 0.4, 0.3)
    x, y = np.meshgrid(*2 * [(np.arange(201) - 100) / 90.0])
    inside = np.zeros((201, 201), bool)
    inside[patch.rows, patch.columns] = np.hypot(patch.u, patch.v) < 0.3
    np.testing.assert_array_equal(inside, np.hypot(x - centre[0], y - centre[1]) < 0.3)
    along_u = np.cos(0.4) * (x - centre[0]) + np.sin(0.4) * (y - centre[1])
    np.testing.assert_allclose(patch.u, along_u[patch.rows, patch.columns], atol=1e-12)


@pytest.mark.parametrize("forward", [[0.0, 0, 1], [0.6, -0.2, -0.7], [0.05, 0.99, 0.05], [0.0, 0.0, -1.0]])
def test_a_tangent_patch_holds_its_cap_and_knows_where_it_is(forward):
    forward = np.array(forward) / np.linalg.norm(forward)
    width, radius = 512, 0.2
    axes = tangent_axes(forward, 0.7)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1)
    patch = tangent_patch(width, axes, radius)
    inside = np.zeros((width // 2, width), bool)
    inside[patch.rows, patch.columns] = np.hypot(patch.u, patch.v) < np.tan(radius)
    focal = width / (2 * np.pi)
    phi = (np.arange(width) - width / 2) / focal
    theta = (np.arange(width // 2)[:, None] - width / 4) / focal
    directions = np.stack(
        [np.cos(theta) * np.sin(phi), np.broadcast_to(np.sin(theta), inside.shape), np.cos(theta) * np.cos(phi)], -1
    )
    np.testing.assert_array_equal(inside, directions @ forward > np.cos(radius))


def test_polygon_distance_of_a_square():
    square = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    u, v = np.array([0.0, 0.5, 2.0, 4.0]), np.array([0.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(polygon_distance(u, v, square), [-1, -0.5, 1, 5])


def test_an_image_is_linearised_and_its_colours_become_luminance(tmp_path):
    image = np.zeros((64, 128, 3), np.uint8)
    image[:, :64] = [0, 0, 255]  # red, in OpenCV's order
    image[:, 64:] = 188
    cv2.imwrite(str(tmp_path / "pano.png"), image)
    panorama = load_panorama(tmp_path / "pano.png")
    assert panorama.dtype == np.float32
    assert panorama[5, 5] == pytest.approx(0.2126, abs=1e-4)
    assert panorama[5, 100] == pytest.approx(0.5029, abs=1e-3)


def test_the_middle_square_of_an_image_covers_a_plane(tmp_path):
    image = np.full((64, 128), 255, np.uint8)
    image[:, 32:64] = 188
    cv2.imwrite(str(tmp_path / "wide.png"), image)
    plane = load_plane_image(tmp_path / "wide.png", 256)
    assert plane.shape == (256, 256)
    np.testing.assert_allclose(plane[:, :120], 0.5029, atol=1e-3)
    np.testing.assert_allclose(plane[:, 136:], 1.0, atol=1e-3)
    assert fit_plane_image(np.ones((99, 40)), 20).shape == (20, 20)
    with pytest.raises(SimulationError, match="8 x 8"):
        fit_plane_image(np.ones((4, 40)), 20)


def test_unusable_panoramas_are_refused_in_one_line(tmp_path):
    cv2.imwrite(str(tmp_path / "square.png"), np.full((64, 64), 99, np.uint8))
    cv2.imwrite(str(tmp_path / "black.png"), np.zeros((64, 128), np.uint8))
    (tmp_path / "text.png").write_text("no image")
    for name, word in [("square", "twice as wide"), ("black", "zeros"), ("text", "not an image"), ("none", "no such")]:
        with pytest.raises(SimulationError, match=word) as failure:
            load_panorama(tmp_path / f"{name}.png")
        assert "\n" not in str(failure.value)
    with pytest.raises(SimulationError, match="twice as wide"):
        check_panorama(np.ones((4, 8, 3)))
    with pytest.raises(SimulationError, match="finite"):
        check_panorama(np.full((16, 32), np.nan))
