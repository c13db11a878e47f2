import numpy as np

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.simulation import ForegroundSettings, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.cube_map import CubeMap
from cmaxslam_fbp.simulation.scenes import draw_poster, draw_shapes
from cmaxslam_fbp.simulation.sensor import EventSensor


def all_events(simulation, sensor):
    simulation.sensor = lambda: sensor
    return Events.concatenate(simulation.chunks())


def test_skipping_what_is_constant_changes_no_event():
    settings = SimulationSettings(
        scene=draw_shapes(2048, 4), duration_s=0.6, peak_speed_deg_s=600.0, foreground=ForegroundSettings(), seed=4
    )
    simulation = Simulation(settings)
    skipping = simulation.sensor()
    assert skipping._calm.mean() > 0.5
    plain = EventSensor(simulation.camera, simulation.scene_map, settings.sensor, settings.seed, simulation.foreground)
    start = np.zeros(1)
    plain.begin(simulation.motion.rotations(start)[0], simulation.foreground.motion.rotations(start)[0])
    assert len(plain._calm) == 0
    expected, events = all_events(simulation, plain), all_events(simulation, skipping)
    assert len(events) > 50_000
    for name in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(events, name), getattr(expected, name))


def test_texels_near_a_change_are_not_calm():
    texels = np.zeros((6, 201, 201), np.float32)
    texels[2, 100, 100] = 1
    calm = CubeMap(texels, 80.0).calm_texels(0.1).reshape(6, 201, 201)
    row, column = np.mgrid[:201, :201] - 100
    assert not calm[2][np.hypot(row, column) < 80 * 0.1].any()
    assert calm[2][np.hypot(row, column) > 60].all()
    assert calm[[0, 1, 3, 4, 5]].all()


def test_a_busy_scene_is_not_searched_for_calm():
    simulation = Simulation(SimulationSettings(scene=draw_poster(512, 0), duration_s=0.1))
    assert len(simulation.sensor()._calm) == 0
