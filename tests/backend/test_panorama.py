from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.backend.panorama import PanoramaMap, event_density, map_size
from cmaxslam_fbp.backend.panorama_kernels import MOST_VISITS
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

PROJECTION = Equirectangular(256, 128)
PINHOLE = Camera(40, 30, 32.0, 30.0, 17.0, 16.0)
TURNS = {
    "ahead": Rotation.identity(),
    "behind": Rotation.from_euler("y", 179, degrees=True),
    "up and rolled": Rotation.from_euler("yxz", [50, 75, 30], degrees=True),
    "straight down": Rotation.from_euler("x", -90, degrees=True),
    "beside the seam": Rotation.from_euler("yx", [-165, 40], degrees=True),
    **{f"anywhere, {n}": Rotation.random(random_state=n) for n in range(12)},
}


@pytest.mark.parametrize("name", TURNS)
def test_visits_count_the_pixels_whose_direction_the_sensor_sees(name):
    turn = TURNS[name]
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=10), PINHOLE)
    world.visit(turn.as_matrix()[None])
    rows, columns = np.mgrid[:128, :256]
    directions = PROJECTION.unproject(np.stack([columns, rows], -1).reshape(-1, 2))
    seen = turn.inv().apply(directions)
    in_front = seen[:, 2] > 1e-6
    x, y = np.full(len(seen), -1e9), np.full(len(seen), -1e9)
    x[in_front], y[in_front] = PINHOLE.project(seen[in_front]).T
    # Distance inside the border, in pixels: pixel centres from 0 to 39 and from 0 to 29.
    inside = np.minimum.reduce([x, 39 - x, y, 29 - y])
    clear = np.abs(inside) > 1e-3
    np.testing.assert_array_equal(world.visits.reshape(-1)[clear], (inside > 0)[clear])
    assert world.visits.sum() > 400


def test_a_place_was_seen_for_the_time_of_its_visits_in_the_mean_over_the_events():
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128)), PINHOLE)
    world.visit(np.repeat(np.eye(3)[None], 4, axis=0))
    image = np.zeros((64, 128), np.float32)
    image[32, 64], image[0, 0] = 3, 1  # straight ahead, and where the camera has never looked
    assert world.seen_s(Region(32, 64, (64, 128)), image) == pytest.approx(0.75 * 4 * 0.05)


def test_a_map_stays_positive_where_more_is_taken_out_than_there_is():
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=10), PINHOLE)
    region = Region(40, 250, (30, 60))
    world.add(region, np.full((30, 60), 2, np.float32))
    world.replace(region, np.full((30, 60), 5, np.float32), np.eye(30, 60, dtype=np.float32) * 4)
    expected = np.zeros((128, 256), np.float32)
    expected[np.arange(40, 70), (250 + np.arange(30)) % 256] = 1
    np.testing.assert_array_equal(world.image, expected)


def test_the_field_of_view_holds_all_pixels_of_a_distorted_sensor():
    camera = davis240c()
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=10), camera)
    world.visit(np.eye(3)[None])
    inner = camera.bearings()[2:-2:8, 2:-2:8].reshape(-1, 3)
    column, row = np.rint(PROJECTION.project(inner)).astype(int).T
    # The panorama's pixels are coarser than the sensor's: the border may fall between.
    assert world.visits[row, column].mean() > 0.98


def test_visits_add_up():
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=10), PINHOLE)
    world.visit(np.stack([TURNS[name].as_matrix() for name in ("ahead", "ahead", "behind")]))
    assert world.visits.dtype == np.uint16
    assert set(np.unique(world.visits)) == {0, 1, 2}
    assert world.visits[64, 128] == 2


def test_visits_end_where_their_numbers_do():
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=10), PINHOLE)
    world.visits[:] = MOST_VISITS - 1
    world.visit(np.stack([np.eye(3)] * 3))
    assert world.visits.max() == world.visits[64, 128] == MOST_VISITS


def test_pixels_visited_more_often_than_the_cap_stay_as_they_are():
    world = PanoramaMap(BackendConfig(panorama_size=(256, 128), max_visits=2), PINHOLE)
    region = Region(40, 250, (30, 60))
    image = np.ones((30, 60), np.float32)
    world.add(region, image)
    world.visits[50, :] = 3
    world.visits[51, :] = 2
    world.add(region, image)
    assert (world.image[50, :54] == 1).all()
    assert (world.image[51, :54] == 2).all()
    assert (world.image[40:70, 250:] == np.where(np.arange(40, 70) == 50, 1, 2)[:, None]).all()
    assert world.image.sum() == 2 * 30 * 60 - 60
    assert (image == 1).all()


def test_the_density_is_events_per_pixel_that_has_some():
    assert event_density(np.zeros((5, 5), np.float32)) == 0.0
    image = np.zeros((50, 50), np.float32)
    image[:3, :4] = 40
    assert event_density(image) == pytest.approx(40)
    image = np.random.default_rng(0).gamma(0.3, 2, (40, 60)).astype(np.float32)
    expected = image.sum(dtype=float) / (1 - np.exp(-image.astype(float))).sum()
    assert event_density(image) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("focal_px", "columns"), [(199.0, 1024), (560.0, 3072), (1108.0, 4096), (40.0, 512)])
def test_the_map_is_about_as_fine_as_the_sensor(focal_px, columns):
    camera = replace(PINHOLE, fx=focal_px, fy=focal_px)
    assert map_size(BackendConfig(), camera) == (columns, columns // 2)
    assert map_size(BackendConfig(panorama_size=(256, 128)), camera) == (256, 128)
