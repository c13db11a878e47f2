from itertools import pairwise

import numpy as np
import pytest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import Camera, davis240c, dvxplorer
from cmaxslam_fbp.simulation import ForegroundSettings, PlanarSettings, PlanarSimulation, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.schedule import MAX_BLOCK_RAD, pixels_per_radian, pixels_per_tangent, schedule_blocks


def test_blocks_cover_the_time_without_gaps():
    rng = np.random.default_rng(0)
    speeds = np.abs(np.cumsum(rng.standard_normal(2502))) * 0.3
    blocks = list(schedule_blocks(2_500_123, speeds, 0.5 / 280))
    ends = [block.start_us + block.length_us for block in blocks]
    assert [block.start_us for block in blocks] == [0, *ends[:-1]]
    assert ends[-1] == 2_500_123
    for block in blocks:
        assert block.times_us[0] == 0
        assert block.times_us[-1] == block.length_us
        ticks = slice(block.start_us // 1000, -(-(block.start_us + block.length_us) // 1000) + 1)
        assert speeds[ticks].max() * block.length_us * 1e-6 <= MAX_BLOCK_RAD
        assert speeds[ticks].max() * block.length_us * 1e-6 / block.steps <= 0.5 / 280


@pytest.mark.parametrize("camera", [davis240c(), dvxplorer()])
def test_no_pixel_moves_further_than_asked_between_two_renderings(camera):
    settings = SimulationSettings(
        scene=np.ones((64, 128)), camera=camera, duration_s=1.0, peak_speed_deg_s=700.0, foreground=ForegroundSettings()
    )
    simulation = Simulation(settings)
    edge = np.array([[0, 0], [camera.width - 1, 0], [0, camera.height - 1], [camera.width // 2, camera.height // 2]])
    points = camera.undistort(edge + 0.0)
    rays = np.column_stack([points, np.ones(4)])
    largest = 0.0
    for block in simulation.blocks[::3]:
        rotations = simulation.motion.rotations((block.start_us + block.times_us) * 1e-6)
        for before, after in pairwise(rotations):
            moved = camera.project(rays @ (after.T @ before).T)
            largest = max(largest, float(np.linalg.norm(moved - edge, axis=1).max()))
    assert 0.1 < largest <= 0.5


@pytest.mark.parametrize("camera", [davis240c(), dvxplorer()])
def test_no_pixel_of_a_plane_moves_further_than_asked_between_two_renderings(camera):
    settings = PlanarSettings(scene=np.ones((8, 8)), camera=camera, duration_s=1.0, peak_speed_m_s=2.0, depth_m=0.5)
    simulation = PlanarSimulation(settings)
    edge = np.array([[0, 0], [camera.width - 1, 0], [0, camera.height - 1], [camera.width // 2, camera.height // 2]])
    rays = np.column_stack([camera.undistort(edge + 0.0), np.ones(4)])
    largest = 0.0
    for block in simulation.blocks:
        positions = simulation.translation.positions((block.start_us + block.times_us) * 1e-6)
        for before, after in pairwise(positions):
            moved = camera.project(before + (0.5 - before[2]) * rays - after)
            largest = max(largest, float(np.linalg.norm(moved - edge, axis=1).max()))
    assert 0.25 < largest <= 0.5


def test_no_foreground_before_a_plane_moves_further_than_asked_between_two_renderings():
    fast = ForegroundSettings(peak_speed_deg_s=200.0)
    settings = PlanarSettings(scene=np.ones((8, 8)), duration_s=1.0, peak_speed_m_s=0.05, foreground=fast)
    simulation = PlanarSimulation(settings)
    steps_px = []
    for block in simulation.blocks:
        times_s = (block.start_us + block.times_us) * 1e-6
        speeds = np.linalg.norm(simulation.foreground.motion.angular_velocities(times_s), axis=1)
        steps_px.append(speeds.max() * block.length_us * 1e-6 / block.steps * pixels_per_radian(simulation.camera))
    assert 0.25 < max(steps_px) <= 0.5


def test_pixels_per_tangent_is_the_focal_length_of_a_lens_without_distortion():
    assert pixels_per_tangent(Camera(80, 60, 40.0, 50.0, 39.5, 29.5)) == pytest.approx(50, rel=1e-6)


def test_pixels_per_radian_is_the_focal_length_of_a_narrow_lens():
    assert pixels_per_radian(Camera(8, 6, 900.0, 1000.0, 3.5, 2.5)) == pytest.approx(1000, rel=1e-3)
    assert pixels_per_radian(Camera(1, 1, 900.0, 1000.0, 0, 0)) == 1000


def test_a_camera_that_spins_beyond_measure_is_refused():
    with pytest.raises(SimulationError, match="too fast"):
        list(schedule_blocks(10_000, np.full(11, 500.0), 0.002))
