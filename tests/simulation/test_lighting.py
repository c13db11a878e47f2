"""Light that changes by itself, and the motion of a camera that is covered."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation import (
    CoverSettings,
    FlickerSettings,
    PlanarSettings,
    PlanarSimulation,
    SensorSettings,
    Simulation,
    SimulationSettings,
)
from cmaxslam_fbp.simulation.motions import HandheldMotion, TurnedMotion

CLEAN = SensorSettings(0.3, 0.3, 0.0, refractory_s=0.0, noise_rate_hz=0.0, hot_pixels=0)
GREY = np.full((64, 128), 0.5, np.float32)
CAMERA = Camera(64, 48, 60, 60, 32, 24)


def test_a_flicker_makes_one_event_of_each_polarity_per_period_on_its_part_of_the_image():
    # From log 1.3 = 0.26 to log 0.7 = -0.36: the level passes -0.3 and then 0.
    flicker = FlickerSettings(rate_hz=100.0, depth=0.3, part=0.25)
    simulation = Simulation(SimulationSettings(GREY, CAMERA, 0.5, CLEAN, flicker=flicker, peak_speed_deg_s=0.0))
    events = Events.concatenate(simulation.chunks())
    image = np.bincount(events.y.astype(int) * 64 + events.x, minlength=64 * 48).reshape(48, 64)
    assert (image[:24, 32:] >= 98).all()
    assert (image[:24, 32:] <= 100).all()
    assert image.sum() == image[:24, 32:].sum()
    phase = (events.t_ns - simulation.start_ns) * 1e-9 * 100 % 1
    assert len(np.unique(np.round(phase[500_000 // 100 :], 2))) <= 6


def test_a_covered_lens_sees_darkness_and_then_the_scene_again():
    cover = CoverSettings(start_s=0.3, length_s=0.4, fade_s=0.05)
    simulation = Simulation(SimulationSettings("shapes", CAMERA, 1.0, CLEAN, cover=cover, peak_speed_deg_s=0.0))
    events = Events.concatenate(simulation.chunks())
    t_s = (events.t_ns - simulation.start_ns) * 1e-9
    assert (((t_s > 0.3) & (t_s <= 0.351)) | ((t_s > 0.649) & (t_s <= 0.701))).all()  # within a rendering
    assert set(events.p[t_s < 0.5]) == {0}
    assert set(events.p[t_s > 0.5]) == {1}
    # From the wall to a hundredth of it.
    counts = np.bincount(events.y.astype(int) * 64 + events.x, minlength=64 * 48)
    assert counts.max() in (2 * 15, 2 * 15 - 1)


def test_a_turned_motion_has_its_own_velocity_and_ends_where_it_should():
    motion = HandheldMotion(4.0, 100.0, 40.0, 1)
    turned = TurnedMotion(motion, 1.0, 1.9, 40.0)
    times = np.linspace(0.01, 3.9, 400)
    step = 1e-6
    before, after = (Rotation.from_matrix(turned.rotations(times + d)) for d in (-step, step))
    numeric = (before.inv() * after).as_rotvec() / (2 * step)
    np.testing.assert_allclose(turned.angular_velocities(times), numeric, atol=1e-5)
    np.testing.assert_allclose(turned.rotations([0.9]), motion.rotations([0.9]))
    aside = Rotation.from_euler("y", 40, degrees=True).as_matrix()
    np.testing.assert_allclose(turned.rotations([2.5])[0], aside @ motion.rotations([2.5])[0], atol=1e-12)
    assert turned.duration_s == 4.0


def test_a_camera_turns_while_it_is_covered():
    cover = CoverSettings(start_s=0.2, length_s=0.5, turn_deg=-30.0)
    simulation = Simulation(SimulationSettings("shapes", CAMERA, 1.0, CLEAN, cover=cover, peak_speed_deg_s=0.0))
    truth = simulation.ground_truth
    turned = np.degrees((truth.rotations[0].inv() * truth.rotations[-1]).as_rotvec())
    np.testing.assert_allclose(turned, [0, -30, 0], atol=1e-9)
    events = Events.concatenate(simulation.chunks())
    dark = (events.t_ns > simulation.start_ns + 251_000_000) & (events.t_ns < simulation.start_ns + 649_000_000)
    assert not dark.any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: FlickerSettings(rate_hz=0.0),
        lambda: FlickerSettings(depth=1.0),
        lambda: CoverSettings(length_s=0.1),
        lambda: PlanarSimulation(PlanarSettings(cover=CoverSettings(turn_deg=10.0))),
    ],
)
def test_impossible_lights_are_refused_in_one_line(make):
    with pytest.raises(SimulationError) as failure:
        make()
    assert "\n" not in str(failure.value)
