import numpy as np
import pytest
from event_digest import event_digest

from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.evaluation.translation_errors import camera_velocities
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN
from cmaxslam_fbp.geometry.camera import davis240c, dvxplorer
from cmaxslam_fbp.simulation import ForegroundSettings, PlanarSettings, PlanarSimulation, SensorSettings

CLEAN = SensorSettings(noise_rate_hz=0.0, hot_pixels=0)


def settings(**changes):
    return PlanarSettings(**{"scene": "boxes", "duration_s": 0.8, "seed": 2, **changes})


@pytest.fixture(scope="module")
def recording():
    simulation = PlanarSimulation(settings())
    return simulation, Events.concatenate(simulation.chunks())


def test_events_are_ordered_on_whole_microseconds_within_the_recording(recording):
    simulation, events = recording
    assert len(events) > 100_000
    assert (np.diff(events.t_ns) >= 0).all()
    assert (events.t_ns % 1000 == 0).all()
    assert events.t_ns[0] > simulation.start_ns
    assert events.t_ns[-1] <= simulation.start_ns + 800_000_000


def test_the_same_settings_give_the_same_bits_however_they_are_read(recording):
    simulation, events = recording
    expected = event_digest([events])
    assert event_digest(simulation.chunks(0.002)) == expected
    assert event_digest(PlanarSimulation(settings()).chunks(10.0)) == expected
    assert event_digest(PlanarSimulation(settings(seed=3)).chunks()) != expected


def test_a_plane_twice_as_far_with_twice_the_motion_looks_the_same(recording):
    _, events = recording
    far = PlanarSimulation(settings(depth_m=2.0, peak_speed_m_s=2.0, extent_m=0.8))
    assert event_digest(far.chunks()) == event_digest([events])
    assert event_digest(PlanarSimulation(settings(depth_m=2.0)).chunks()) != event_digest([events])


@pytest.mark.parametrize("camera", [davis240c(), dvxplorer()])
@pytest.mark.parametrize("depth_m", [0.5, 1.0, 3.0])
def test_the_plane_covers_all_that_the_camera_can_see_on_its_way(camera, depth_m):
    simulation = PlanarSimulation(settings(scene=np.ones((8, 8)), camera=camera, depth_m=depth_m))
    plane = simulation.scene_map
    focal = max(camera.fx, camera.fy)
    assert plane.focal == pytest.approx(2 * focal)
    points = camera.undistorted_pixels()
    farthest = 0.0
    for x, y in [(-0.4, -0.32), (0.4, -0.32), (-0.4, 0.32), (0.4, 0.32)]:
        seen = plane.focal * (np.array([x, y]) + (depth_m + 0.2) * points) / depth_m + (plane.size - 1) / 2
        assert seen.min() >= 1
        assert seen.max() <= plane.size - 2
        farthest = max(farthest, seen.max())
    assert farthest > 0.7 * plane.size


def test_ground_truth_has_the_exact_path_and_its_velocity(recording):
    simulation, _ = recording
    truth, path = simulation.ground_truth, simulation.translation
    assert (truth.start_ns, truth.end_ns) == (simulation.start_ns, simulation.start_ns + 800_000_000)
    assert (np.diff(truth.t_ns) == 5_000_000).all()
    np.testing.assert_array_equal(truth.positions_m, path.positions((truth.t_ns - truth.start_ns) * 1e-9))
    np.testing.assert_array_equal(truth.rotations.as_matrix(), np.tile(np.eye(3), (len(truth), 1, 1)))
    t_ns = truth.start_ns + np.arange(20_000_000, 780_000_000, 1_700_000)
    velocities = path.velocities((t_ns - truth.start_ns) * 1e-9)
    assert np.linalg.norm(velocities, axis=1).max() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(camera_velocities(truth, t_ns), velocities, atol=1e-3)


def sharpness(simulation, events, velocity):
    """Variance of the image of the events moved to their middle by `x' ~ x + (t_ref - t) w`."""
    points = simulation.camera.undistorted_pixels()[events.y, events.x]
    dt_s = (events.t_ns.mean() - events.t_ns) * 1e-9
    w = CAMERA_SIGN * np.asarray(velocity)
    moved = (points + dt_s[:, None] * w[:2]) / (1 + dt_s * w[2])[:, None]
    edges = np.linspace(-0.9, 0.9, 361)
    return np.histogram2d(moved[:, 0], moved[:, 1], bins=(edges, edges))[0].var()


def test_the_true_velocity_makes_the_events_of_a_packet_sharp(recording):
    simulation, events = recording
    middle_s = 0.6
    packet = events[np.abs(events.t_ns - simulation.start_ns - middle_s * 1e9) < 20e6]
    (true,) = simulation.normalised_velocities([middle_s])
    assert np.hypot(*true[:2]) > 0.4
    sharp = sharpness(simulation, packet, true)
    assert sharp > 1.3 * sharpness(simulation, packet, np.zeros(3))
    assert sharp > 1.3 * sharpness(simulation, packet, -true)
    for axis in range(2):
        for step in (-0.15, 0.15):
            assert sharp > sharpness(simulation, packet, true + step * np.eye(3)[axis])


def test_the_frontend_recovers_the_linear_velocity(recording):
    simulation, events = recording
    config = FrontendConfig(model="translation")
    estimates = [e for e in VelocityEstimator(simulation.camera, config).run([events]) if e.t_ns > events.t_ns[0]]
    assert len(estimates) > 50
    t_s = (np.array([e.t_ns for e in estimates]) - simulation.start_ns) * 1e-9
    errors = np.array([e.velocity for e in estimates]) - simulation.normalised_velocities(t_s)
    assert (np.sqrt((errors**2).mean(axis=0)) < [0.05, 0.05, 0.1]).all()
    assert (np.abs(errors.mean(axis=0)) < 0.02).all()


def test_a_clean_camera_at_rest_sees_nothing():
    simulation = PlanarSimulation(settings(peak_speed_m_s=0.0, sensor=CLEAN))
    assert sum(len(chunk) for chunk in simulation.chunks()) == 0


def test_a_foreground_object_wanders_over_the_view():
    foreground = ForegroundSettings(8.0, 100.0, 20.0)
    simulation = PlanarSimulation(settings(scene=np.ones((8, 8)), sensor=CLEAN, foreground=foreground))
    events = Events.concatenate(simulation.chunks())
    late = events[events.t_ns > simulation.start_ns + 700_000_000]
    assert len(late) > 500
    rays = simulation.camera.bearings()[late.y, late.x]
    centres = simulation.foreground.motion.rotations((late.t_ns - simulation.start_ns) * 1e-9)[:, :, 2]
    angles_deg = np.degrees(np.arccos(np.einsum("ni,ni->n", rays, centres)))
    assert 7.5 < angles_deg.max() < 8.6


@pytest.mark.parametrize("scene", ["shapes", "poster"])
def test_the_large_sensor_works_with_every_scene(scene):
    simulation = PlanarSimulation(settings(scene=scene, camera=dvxplorer(), duration_s=0.05))
    events = Events.concatenate(simulation.chunks())
    assert events.x.max() > 600
    assert events.y.max() > 440


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"depth_m": 0.0}, "depth"),
        ({"depth_m": np.nan}, "depth"),
        ({"depth_m": 0.3}, "too close"),
        ({"extent_m": -1.0}, "extent"),
        ({"peak_speed_m_s": -1.0}, "speed"),
        ({"duration_s": 0.0}, "duration"),
        ({"seed": -1}, "seed"),
        ({"peak_speed_m_s": 1e5}, "too fast"),
        ({"scene": "rooms"}, "no such picture"),
        ({"scene": np.ones((10, 10, 3))}, "grey"),
        ({"scene": -np.ones((10, 10))}, "finite"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(changes, word):
    with pytest.raises(SimulationError, match=word) as failure:
        list(PlanarSimulation(settings(**changes)).chunks())
    assert "\n" not in str(failure.value)
