"""Events of an edge whose crossing times are known in closed form."""

import numpy as np
import pytest
from scipy.special import ndtri

from cmaxslam_fbp.geometry.camera import Camera, davis240c
from cmaxslam_fbp.simulation.cube_map import make_cube_map
from cmaxslam_fbp.simulation.schedule import Block
from cmaxslam_fbp.simulation.sensor import EventSensor, SensorSettings

CLEAN = SensorSettings(
    contrast_on=0.25, contrast_off=0.25, contrast_sigma=0.0, refractory_s=0.0, noise_rate_hz=0.0, hot_pixels=0
)
WIDTH = 3072
STEP = 1.9  # rise of the edge in log intensity
EDGE_SIGMA_RAD = np.radians(0.8)


def rotation_y(angles):
    c, s, zero, one = np.cos(angles), np.sin(angles), np.zeros_like(angles), np.ones_like(angles)
    return np.stack([c, zero, s, zero, one, zero, -s, zero, c], axis=-1).reshape(-1, 3, 3)


def rotation_x(angles):
    c, s, zero, one = np.cos(angles), np.sin(angles), np.zeros_like(angles), np.ones_like(angles)
    return np.stack([one, zero, zero, zero, c, -s, zero, s, c], axis=-1).reshape(-1, 3, 3)


def edge_panorama(angle_rad):
    """Intensity that rises by `exp(STEP)` where the angle (an image of them) passes zero."""
    from scipy.special import ndtr

    return np.exp(STEP * ndtr(angle_rad / EDGE_SIGMA_RAD)).astype(np.float32)


def turn_by_rate(sensor, rotation, rate_rad_s, blocks=4, length_us=10_000, steps=32):
    sensor.begin(rotation(np.zeros(1))[0])
    pieces = []
    for n in range(blocks):
        block = Block(n * length_us, length_us, steps)
        pieces.append(sensor.advance(block, rotation(rate_rad_s * (block.start_us + block.times_us[1:]) * 1e-6)))
    return tuple(np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("t_ns", "x", "y", "p"))


def crossing_times_s(angles, rate_rad_s, level_start):
    """Times (7 thresholds, pixels) at which pixels that see the edge at `angle + rate t` reach their thresholds."""
    direction = np.sign(rate_rad_s)
    levels = level_start + direction * 0.25 * np.arange(1, 8)[:, None]
    with np.errstate(invalid="ignore"):
        return (EDGE_SIGMA_RAD * ndtri(levels / STEP) - angles) / rate_rad_s


@pytest.mark.parametrize("rate_deg_s", [80.0, -80.0])
def test_a_camera_that_yaws_over_a_vertical_edge_sees_it_where_and_when_it_is(rate_deg_s):
    """Turning right (R_y of a positive angle) moves the view to larger longitudes: into the bright side, ON."""
    from scipy.special import ndtr

    camera = davis240c()
    offset = np.radians(1.7)  # the edge, right of the panorama's centre
    longitude = (np.arange(WIDTH) - WIDTH / 2) * 2 * np.pi / WIDTH - offset
    panorama = np.tile(edge_panorama(longitude), (WIDTH // 2, 1))
    sensor = EventSensor(camera, make_cube_map(panorama, 500.0, 0.0), CLEAN, 0)
    rate = np.radians(rate_deg_s)
    t_ns, x, y, p = turn_by_rate(sensor, rotation_y, rate)
    assert len(t_ns) > 5000
    assert (p == (rate_deg_s > 0)).all()

    bearings = camera.bearings()
    angles = (np.arctan2(bearings[..., 0], bearings[..., 2]) - offset).ravel()
    expected = crossing_times_s(angles, rate, STEP * ndtr(angles / EDGE_SIGMA_RAD))
    pixel = y.astype(int) * camera.width + x
    order = np.zeros(len(pixel), int)  # the n-th event of its pixel
    for n in np.unique(pixel):
        order[pixel == n] = np.arange((pixel == n).sum())
    times_s = t_ns * 1e-9 - expected[order, pixel]
    # The middle four of seven thresholds: the tails of the edge are flat, and say little about its place.
    level = STEP * ndtr((angles[pixel] + rate * t_ns * 1e-9) / EDGE_SIGMA_RAD)
    steep = np.abs(level - STEP / 2) < 0.6
    error_px = times_s[steep] * np.abs(rate) * camera.fx
    assert np.abs(error_px).max() < 0.05
    assert abs(error_px.mean()) < 0.005
    # How many: every pixel has all the thresholds that fit between its first and last level.
    span = STEP * (ndtr((angles + rate * 0.04) / EDGE_SIGMA_RAD) - ndtr(angles / EDGE_SIGMA_RAD))
    due = np.floor(np.abs(span) / 0.25).astype(int)
    counted = np.bincount(pixel, minlength=len(angles))
    assert (counted != due).mean() < 0.01


def test_a_camera_that_pitches_up_sees_a_bright_sky_come_down():
    """R_x of a positive angle turns the view up, towards -y; a sky that is brighter above makes ON events there."""
    camera = Camera(64, 48, 60.0, 60.0, 31.5, 23.5)
    latitude = (np.arange(WIDTH // 2) - WIDTH / 4) * 2 * np.pi / WIDTH
    panorama = np.repeat(edge_panorama(-latitude)[:, None], WIDTH, axis=1)
    sensor = EventSensor(camera, make_cube_map(panorama, 500.0, 0.0), CLEAN, 0)
    t_ns, x, y, p = turn_by_rate(sensor, rotation_x, np.radians(200.0))
    assert (p == 1).all()
    # The pixel at the angle b below the axis reaches the n-th threshold when the camera has turned by b plus the
    # edge's own angle there. Rows that start in the dark, at the middle column:
    for row in range(28, 31):
        times_s = t_ns[(x == 31) & (y == row)] * 1e-9
        angles = np.arctan((row - 23.5) / 60.0) + EDGE_SIGMA_RAD * ndtri(0.25 * np.arange(1, 8) / STEP)
        due = angles[angles < np.radians(200.0) * 0.04]
        assert len(times_s) == len(due) >= 3
        np.testing.assert_allclose(np.radians(200.0) * times_s, due, atol=0.02 / 60)


def test_a_ramp_in_longitude_fires_all_pixels_of_the_sensor_together():
    camera = Camera(32, 24, 30.0, 30.0, 15.5, 11.5)
    longitude = (np.arange(1024) - 512) * 2 * np.pi / 1024
    gradient = 1.4  # log intensity per radian, out to 90 degrees on both sides
    panorama = np.tile(np.exp(gradient * np.clip(longitude, -1.57, 1.57)).astype(np.float32), (512, 1))
    sensor = EventSensor(camera, make_cube_map(panorama, 325.0, 0.0), CLEAN, 0)
    rate = np.radians(800.0)
    t_ns, _, _, p = turn_by_rate(sensor, rotation_y, rate)
    assert (p == 1).all()
    assert len(t_ns) == 3 * 24 * 32  # 0.56 rad times 1.4 is 3.1 thresholds
    phase = t_ns * 1e-9 * rate * gradient / 0.25
    np.testing.assert_allclose(phase, np.round(phase), atol=0.02)


def test_the_view_is_the_panorama_at_the_pixels_directions():
    camera = davis240c()
    rng = np.random.default_rng(0)
    waves = rng.normal(0, 4, (5, 3))

    def level(d):
        return np.sin(d @ waves.T).sum(axis=-1) / 3

    focal = WIDTH / (2 * np.pi)
    phi, theta = (np.arange(WIDTH) - WIDTH / 2) / focal, (np.arange(WIDTH // 2)[:, None] - WIDTH / 4) / focal
    y = np.broadcast_to(np.sin(theta), (WIDTH // 2, WIDTH))
    directions = np.stack([np.cos(theta) * np.sin(phi), y, np.cos(theta) * np.cos(phi)], axis=-1)
    sensor = EventSensor(camera, make_cube_map(np.exp(level(directions)).astype(np.float32), 400.0, 0.0), CLEAN, 0)
    for yaw, pitch in [(0.0, 0.0), (0.8, 0.6), (3.1, -0.3), (-1.9, 1.5), (2.0, -1.57)]:
        rotation = rotation_y(np.array([yaw]))[0] @ rotation_x(np.array([pitch]))[0]
        truth = level(camera.bearings() @ rotation.T)
        gradient_per_px = np.abs(np.gradient(truth)).max()
        assert np.abs(sensor.render(rotation) - truth).max() < 0.05 * gradient_per_px
