import numpy as np
import pytest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.simulation import RoomSettings, RoomSimulation, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.motions import HandheldMotion, SampledMotion
from cmaxslam_fbp.simulation.room import furnish, make_room_map
from cmaxslam_fbp.simulation.translations import HandTranslation, SampledTranslation
from cmaxslam_fbp.trajectory import RotationTrajectory


def smooth_panorama(width=1024):
    rows, columns = np.mgrid[: width // 2, :width] / width * 2 * np.pi
    return (1.5 + np.sin(3 * columns) * np.sin(rows) ** 2 + 0.4 * np.cos(5 * rows)).astype(np.float32)


@pytest.fixture(scope="module")
def simulation():
    return RoomSimulation(RoomSettings(scene=smooth_panorama(), duration_s=0.5, scene_distance_m=0.5, seed=1))


def test_from_its_origin_a_room_looks_like_its_panorama(simulation):
    turning = Simulation(SimulationSettings(scene=smooth_panorama(), duration_s=0.5, seed=1))
    rotation = simulation.motion.rotations([0.4])[0]
    room, panorama = (one.sensor().render(rotation, None, np.zeros(3)) for one in (simulation, turning))
    np.testing.assert_allclose(room, panorama, atol=5e-3)


@pytest.mark.parametrize("room", ["box", "wall", "clutter"])
def test_a_displaced_camera_sees_on_each_wall_what_the_origin_sees_there(room):
    simulation = RoomSimulation(
        RoomSettings(scene=smooth_panorama(), room=room, duration_s=0.5, scene_distance_m=0.5, seed=1)
    )
    position = np.array([0.05, -0.03, 0.04])
    rays = davis240c().bearings().reshape(-1, 3)
    distances = simulation.scene_map.distances(rays, position)
    points = position + distances[:, None] * rays
    seen = simulation.sensor().render(np.eye(3), None, position).reshape(-1)
    on_wall = np.isclose(simulation.scene_map.distances(unit(points)), np.linalg.norm(points, axis=1), rtol=1e-6)
    walls = RoomSimulation(RoomSettings(scene=smooth_panorama(), room="box", scene_distance_m=0.5, duration_s=0.5))
    plain = np.isclose(walls.scene_map.distances(unit(points)), np.linalg.norm(points, axis=1), rtol=1e-6)
    expected = simulation.texture[
        np.rint(256 + 1024 / 2 / np.pi * np.arcsin(unit(points)[:, 1])).astype(int),
        np.rint(512 + 1024 / 2 / np.pi * np.arctan2(points[:, 0], points[:, 2])).astype(int) % 1024,
    ]
    chosen = on_wall & (plain | (room == "wall"))
    assert chosen.mean() > (0.7 if room == "clutter" else 0.99)
    assert np.percentile(np.abs(seen - np.log(expected))[chosen], 95) < 0.02


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_distances_are_those_of_the_walls_and_of_the_boards_before_them():
    ahead, right, behind = np.array([[0.0, 0, 1], [1, 0, 0], [0, 0, -1]])
    box = make_room_map(furnish("box", 2.0, 0), smooth_panorama(64), 32.0, 0.0)
    np.testing.assert_allclose(box.distances([ahead, right, behind]), [2.0, 3.0, 4.0])
    np.testing.assert_allclose(box.distances([ahead, right], [0.5, 0, 0.25]), [1.75, 2.5])
    clutter = make_room_map(furnish("clutter", 2.0, 0), smooth_panorama(64), 32.0, 0.0)
    rays = unit(np.random.default_rng(0).normal(size=(20000, 3)))
    nearer = clutter.distances(rays) < box.distances(rays) - 1e-9
    assert 0.005 < nearer.mean() < 0.2
    assert (clutter.distances(rays) <= box.distances(rays) + 1e-9).all()


def test_the_path_of_a_hand_has_its_velocity_and_acceleration():
    motion = HandheldMotion(2.0, 200.0, 40.0, 3)
    path = HandTranslation(motion, 0.1, 3)
    t, h = np.linspace(0.1, 1.9, 40), 1e-4
    np.testing.assert_allclose(path.positions([0.0]), np.zeros((1, 3)), atol=1e-12)
    slopes = (path.positions(t + h) - path.positions(t - h)) / (2 * h)
    np.testing.assert_allclose(path.velocities(t), slopes, atol=1e-5)
    bends = (path.positions(t + 10 * h) - 2 * path.positions(t) + path.positions(t - 10 * h)) / (10 * h) ** 2
    np.testing.assert_allclose(path.accelerations(t), bends, atol=1e-2)
    assert 0.02 < np.abs(path.positions(t)).max() < 0.25


def test_positions_of_a_trajectory_are_followed_in_the_world_of_the_motion():
    t_ns = np.arange(0, 2_000_000_000, 5_000_000, dtype=np.int64)
    t = t_ns * 1e-9
    quaternions = np.stack([0 * t, np.sin(0.3 + 0.2 * t), 0 * t, np.cos(0.3 + 0.2 * t)], axis=1)
    positions = np.stack([1 + 0.03 * np.sin(3 * t), 2 + 0.02 * t, 0.01 * np.cos(2 * t)], axis=1)
    motion = SampledMotion(RotationTrajectory(t_ns, quaternions, positions))
    path = SampledTranslation(RotationTrajectory(t_ns, quaternions, positions), motion)
    expected = (positions - positions[0]) @ motion.turn.T
    np.testing.assert_allclose(path.positions(t), expected, atol=2e-6)


def test_ground_truth_has_positions_and_the_same_settings_give_the_same_events(simulation):
    truth = simulation.ground_truth
    np.testing.assert_allclose(truth.positions_m[0], 0, atol=1e-12)
    assert np.abs(truth.positions_m).max() > 1e-3
    counts = [sum(len(chunk) for chunk in RoomSimulation(simulation.settings).chunks(c)) for c in (0.02, 0.2)]
    assert counts[0] == counts[1] > 1000


def test_a_camera_that_leaves_the_room_is_an_error_of_one_line():
    with pytest.raises(SimulationError, match=r"from a wall or behind it; give a larger --scene-distance"):
        RoomSimulation(RoomSettings(duration_s=3.0, scene_distance_m=0.05, lever_m=0.3)).blocks  # noqa: B018
    with pytest.raises(SimulationError, match="no room 'hall'"):
        RoomSettings(room="hall")
