import numpy as np
import pytest
from event_digest import event_digest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.geometry.camera import Camera, dvxplorer
from cmaxslam_fbp.simulation import ForegroundSettings, SensorSettings, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.scenes import draw_poster, draw_shapes
from cmaxslam_fbp.trajectory import RotationTrajectory

GREY = np.full((64, 128), 0.5, np.float32)
POSTER = draw_poster(1024, 0)
SHAPES = draw_shapes(2048, 0)


def settings(**changes):
    return SimulationSettings(**{"scene": POSTER, "duration_s": 0.25, **changes})


@pytest.fixture(scope="module")
def recording():
    simulation = Simulation(settings())
    return simulation, Events.concatenate(simulation.chunks())


def test_events_are_ordered_on_whole_microseconds_within_the_recording(recording):
    simulation, events = recording
    assert len(events) > 50_000
    assert (np.diff(events.t_ns) >= 0).all()
    assert (events.t_ns % 1000 == 0).all()
    assert events.t_ns[0] > simulation.start_ns
    assert events.t_ns[-1] <= simulation.start_ns + 250_000_000
    assert events.x.max() < 240
    assert events.y.max() < 180
    assert set(np.unique(events.p)) == {0, 1}
    equal = np.flatnonzero(np.diff(events.t_ns) == 0)
    pixels = events.y.astype(int) * 240 + events.x
    assert (pixels[equal] < pixels[equal + 1]).all()


def test_the_same_settings_give_the_same_bits_however_they_are_read(recording):
    simulation, events = recording
    expected = event_digest([events])
    assert event_digest(simulation.chunks()) == expected
    assert event_digest(Simulation(settings()).chunks(0.001)) == expected
    assert event_digest(Simulation(settings()).chunks(10.0)) == expected
    assert event_digest(Simulation(settings(seed=1)).chunks()) != expected


def test_chunks_are_short(recording):
    simulation, _ = recording
    lengths_s = [np.ptp(chunk.t_ns) * 1e-9 for chunk in simulation.chunks(0.02)]
    assert max(lengths_s) < 0.1
    assert len(lengths_s) >= 3


def test_the_output_grows_when_a_block_has_more_events_than_expected(recording):
    simulation, events = recording
    sensor = simulation.sensor()
    sensor._out_us, sensor._out_code = np.empty(64, np.int32), np.empty(64, np.int32)
    simulation.sensor = lambda: sensor
    assert event_digest(simulation.chunks()) == event_digest([events])
    del simulation.sensor


def test_pixels_rest_after_an_event_for_the_refractory_time():
    quick = SensorSettings(refractory_s=2e-3, noise_rate_hz=20.0)
    events = Events.concatenate(Simulation(settings(sensor=quick)).chunks())
    pixel = events.y.astype(np.int64) * 240 + events.x
    order = np.lexsort((events.t_ns, pixel))
    same = np.diff(pixel[order]) == 0
    gaps = np.diff(events.t_ns[order])[same]
    assert 2_000_000 <= gaps.min() < 2_100_000


def test_a_camera_at_rest_gives_noise_at_its_rate_and_hot_pixels():
    sensor = SensorSettings(noise_rate_hz=2.0, hot_pixels=7, hot_pixel_rate_hz=300.0, refractory_s=0.0)
    simulation = Simulation(settings(scene=GREY, peak_speed_deg_s=0.0, duration_s=4.0, sensor=sensor))
    events = Events.concatenate(simulation.chunks())
    counts = np.bincount(events.y.astype(int) * 240 + events.x, minlength=43200)
    hot = np.argsort(counts)[-7:]
    np.testing.assert_array_equal(np.sort(hot), simulation.sensor().traits.hot_pixels)
    np.testing.assert_allclose(counts[hot], 1200, atol=5 * np.sqrt(1200))
    others = np.delete(counts, hot)
    assert others.mean() == pytest.approx(8.0, abs=5 * np.sqrt(8.0 / 43200))
    assert others.var() == pytest.approx(8.0, rel=0.05)
    assert events.p.mean() == pytest.approx(0.5, abs=0.01)


def test_a_clean_camera_at_rest_sees_nothing():
    sensor = SensorSettings(noise_rate_hz=0.0, hot_pixels=0)
    simulation = Simulation(settings(peak_speed_deg_s=0.0, duration_s=1.0, sensor=sensor))
    assert sum(len(chunk) for chunk in simulation.chunks()) == 0


def test_thresholds_spread_as_asked_and_differ_by_polarity():
    sensor = Simulation(settings(sensor=SensorSettings(0.3, 0.2, 0.03))).sensor()
    assert sensor.traits.thresholds_on.mean() == pytest.approx(0.3, abs=0.001)
    assert sensor.traits.thresholds_off.mean() == pytest.approx(0.2, abs=0.001)
    assert sensor.traits.thresholds_on.std() == pytest.approx(0.03, rel=0.02)
    assert sensor.traits.thresholds_off.std() == pytest.approx(0.03, rel=0.02)
    assert abs(np.corrcoef(sensor.traits.thresholds_on, sensor.traits.thresholds_off)[0, 1]) < 0.02
    assert Simulation(settings(sensor=SensorSettings(0.02, 0.02, 0.1))).sensor().traits.thresholds_on.min() >= 0.01


def test_ground_truth_is_the_motion_itself(recording):
    simulation, _ = recording
    truth = simulation.ground_truth
    assert truth.start_ns == simulation.start_ns
    assert truth.end_ns == simulation.start_ns + 250_000_000
    assert (np.diff(truth.t_ns) == 5_000_000).all()
    times_s = (truth.t_ns - simulation.start_ns) * 1e-9
    np.testing.assert_allclose(truth.rotations.as_matrix(), simulation.motion.rotations(times_s), atol=1e-12)


def panoramic_image(camera, events, rotations, width=1024):
    """Events counted where their rotations (N, 3, 3) place them on a panorama."""
    rays = camera.bearings()[events.y, events.x]
    x, y, z = np.einsum("nij,nj->in", rotations, rays)
    focal = width / (2 * np.pi)
    column = np.round(width / 2 + focal * np.arctan2(x, z)).astype(int) % width
    row = np.clip(np.round(width / 4 + focal * np.arcsin(np.clip(y, -1, 1))).astype(int), 0, width // 2 - 1)
    return np.bincount(row * width + column, minlength=width * width // 2).reshape(width // 2, width)


def test_the_true_rotation_makes_the_events_sharp_and_the_reversed_one_does_not():
    simulation = Simulation(settings(scene=SHAPES, duration_s=0.5))
    events = Events.concatenate(simulation.chunks())
    rotations = simulation.motion.rotations((events.t_ns - simulation.start_ns) * 1e-9)
    camera = simulation.camera
    sharp = panoramic_image(camera, events, rotations).var()
    still = panoramic_image(camera, events, np.broadcast_to(np.eye(3), rotations.shape)).var()
    reversed_ = panoramic_image(camera, events, rotations.transpose(0, 2, 1)).var()
    assert sharp > 3 * reversed_
    assert sharp > 2 * still


def test_events_fall_on_the_edges_of_the_scene():
    simulation = Simulation(settings(scene=SHAPES, duration_s=0.5))
    events = Events.concatenate(simulation.chunks())
    rotations = simulation.motion.rotations((events.t_ns - simulation.start_ns) * 1e-9)
    image = panoramic_image(simulation.camera, events, rotations, 2048)
    level = np.log(SHAPES)
    down, right = np.gradient(level)
    edges = np.hypot(down, right)

    def overlap(dy, dx):
        return float((np.roll(edges, (dy, dx), (0, 1)) * image).sum())

    best = max((overlap(dy, dx), dy, dx) for dy in range(-5, 6) for dx in range(-5, 6))
    assert abs(best[1]) <= 1  # pixels of 0.18 deg: 0.6 camera pixels
    assert abs(best[2]) <= 1


def test_a_foreground_object_adds_events_that_the_camera_motion_does_not_explain():
    clean = SensorSettings(noise_rate_hz=0.0, hot_pixels=0)
    simulation = Simulation(
        settings(
            scene=GREY,
            peak_speed_deg_s=0.0,
            duration_s=1.0,
            sensor=clean,
            foreground=ForegroundSettings(8.0, 100.0, 20.0),
        )
    )
    events = Events.concatenate(simulation.chunks())
    assert len(events) > 5_000
    late = events[events.t_ns > simulation.start_ns + 950_000_000]
    rays = simulation.camera.bearings()[late.y, late.x]
    centres = simulation.foreground.motion.rotations((late.t_ns - simulation.start_ns) * 1e-9)[:, :, 2]
    angles_deg = np.degrees(np.arccos(np.einsum("ni,ni->n", rays, centres)))
    assert angles_deg.max() < 8.6
    assert angles_deg.max() > 7.5


def test_a_trajectory_drives_the_camera():
    t_ns = np.arange(0, 600_000_001, 5_000_000)
    truth = Rotation.from_euler("YXZ", np.outer(np.sin(t_ns * 4e-9), [40, 20, 10]), degrees=True)
    world = Rotation.from_euler("YXZ", [100, 20, 30], degrees=True)
    trajectory = RotationTrajectory.from_rotations(t_ns + 77, world * truth)
    simulation = Simulation(settings(trajectory=trajectory, duration_s=None))
    assert simulation.duration_s == pytest.approx(0.6)
    difference = truth.inv() * simulation.ground_truth.rotations
    assert np.degrees(difference.magnitude()).max() < 0.01
    assert Simulation(settings(trajectory=trajectory, duration_s=0.3)).duration_s == pytest.approx(0.3)
    with pytest.raises(SimulationError, match="trajectory lasts"):
        Simulation(settings(trajectory=trajectory, duration_s=0.7))


def test_the_large_sensor_works():
    simulation = Simulation(settings(camera=dvxplorer(), duration_s=0.05))
    events = Events.concatenate(simulation.chunks())
    assert events.x.max() > 600
    assert events.y.max() > 440


def test_a_recording_may_end_between_milliseconds():
    simulation = Simulation(settings(camera=Camera(16, 12, 15, 15, 8, 6), duration_s=0.0123456))
    assert simulation.duration_s == pytest.approx(0.012346)
    assert simulation.ground_truth.end_ns == simulation.start_ns + 12_346_000
    list(simulation.chunks())


@pytest.mark.parametrize(
    "changes",
    [
        {"duration_s": 0.0},
        {"duration_s": np.nan},
        {"max_motion_px": 0.0},
        {"blur_px": -1.0},
        {"seed": -1},
    ],
)
def test_impossible_settings_are_refused_in_one_line(changes):
    with pytest.raises(SimulationError) as failure:
        settings(**changes)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    "changes",
    [{"contrast_on": 0.0}, {"contrast_off": -1.0}, {"refractory_s": -1}, {"noise_rate_hz": np.nan}, {"hot_pixels": -2}],
)
def test_impossible_sensors_are_refused_in_one_line(changes):
    with pytest.raises(SimulationError) as failure:
        SensorSettings(**changes)
    assert "\n" not in str(failure.value)


def test_impossible_requests_are_refused():
    with pytest.raises(SimulationError, match="no such panorama"):
        list(Simulation(settings(scene="rooms")).chunks())
    with pytest.raises(SimulationError, match="twice as wide"):
        list(Simulation(settings(scene=np.ones((10, 10)))).chunks())
    with pytest.raises(SimulationError, match="hot pixels"):
        Simulation(settings(sensor=SensorSettings(hot_pixels=50_000))).sensor()
    with pytest.raises(SimulationError, match="radius"):
        list(Simulation(settings(foreground=ForegroundSettings(radius_deg=60.0))).chunks())
    with pytest.raises(SimulationError, match="chunks"):
        next(Simulation(settings()).chunks(0.0))
