import numpy as np
import pytest

from cmaxslam_fbp.simulation.cube_map import FACES, REACH, blur_panorama, make_cube_map, pad_panorama


def directions_of(width):
    focal = width / (2 * np.pi)
    phi = (np.arange(width) - width / 2) / focal
    theta = (np.arange(width // 2)[:, None] - width / 4) / focal
    y = np.broadcast_to(np.sin(theta), (width // 2, width))
    return np.stack([np.cos(theta) * np.sin(phi), y, np.cos(theta) * np.cos(phi)], axis=-1)


def smooth_level(directions):
    d = np.asarray(directions, np.float64)
    d = d / np.linalg.norm(d, axis=-1, keepdims=True)
    return np.sin(3 * d[..., 0] + 1) + 0.7 * np.cos(4 * d[..., 1]) - 0.5 * d[..., 2] * d[..., 0]


def test_faces_are_right_handed_axes():
    for axes in FACES:
        np.testing.assert_allclose(axes @ axes.T, np.eye(3))
        assert np.linalg.det(axes) == pytest.approx(1)


def test_a_cube_map_shows_every_direction_where_the_convention_says():
    panorama = np.exp(smooth_level(directions_of(2048))).astype(np.float32)
    cube = make_cube_map(panorama, 300.0, 0.0)
    grid = (np.arange(cube.size) - (cube.size - 1) / 2) / 300.0
    assert grid[-1] > REACH
    u, v = np.meshgrid(grid, grid)
    for face, axes in enumerate(FACES):
        truth = smooth_level(np.stack([u, v, np.ones_like(u)], -1) @ axes)
        np.testing.assert_allclose(cube.texels[face], truth, atol=4e-4)


def test_a_padded_panorama_continues_around_and_over_the_poles():
    width, margin = 256, 6
    padded = pad_panorama(smooth_level(directions_of(width)).astype(np.float32), margin)
    assert padded.shape == (width // 2 + 2 * margin, width + 2 * margin)
    angle = 2 * np.pi / width
    phi = (np.arange(-margin, width + margin) - width / 2) * angle
    theta = (np.arange(-margin, width // 2 + margin)[:, None] - width / 4) * angle  # beyond 90 degrees: over the pole
    y = np.broadcast_to(np.sin(theta), padded.shape)
    truth = smooth_level(np.stack([np.cos(theta) * np.sin(phi), y, np.cos(theta) * np.cos(phi)], axis=-1))
    lower_pole = margin + width // 2
    np.testing.assert_allclose(padded[lower_pole], truth[lower_pole], atol=0.02)
    np.testing.assert_allclose(np.delete(padded, lower_pole, 0), np.delete(truth, lower_pole, 0), atol=1e-6)


@pytest.mark.parametrize("forward", [[0.0, 0, 1], [0.0, 0, -1], [0.5, 0.8, 0.3], [0.3, -0.6, -0.7]])
def test_the_blur_of_a_spot_is_round_on_the_sphere_and_keeps_its_light(forward):
    forward = np.array(forward) / np.linalg.norm(forward)
    width, spot, sigma = 1024, 0.02, 0.03
    directions = directions_of(width)
    angle = np.arccos(np.clip(directions @ forward, -1, 1))
    blurred = blur_panorama(np.exp(-0.5 * (angle / spot) ** 2).astype(np.float32), sigma)
    total = np.hypot(spot, sigma)
    expected = spot**2 / total**2 * np.exp(-0.5 * (angle / total) ** 2)
    np.testing.assert_allclose(blurred, expected, atol=0.02)


def test_the_blur_keeps_a_constant():
    np.testing.assert_allclose(blur_panorama(np.full((64, 128), 0.3, np.float32), 0.05), 0.3, rtol=1e-5)


def test_the_dark_is_limited_to_a_hundredth_of_the_brightest():
    panorama = np.ones((64, 128), np.float32)
    panorama[:, 10:40] = 0
    cube = make_cube_map(panorama, 20.0, 0.0)
    assert cube.texels.min() == pytest.approx(np.log(0.01), abs=0.6)  # the interpolation overshoots a little
