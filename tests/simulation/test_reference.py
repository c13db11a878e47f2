"""The compiled sensor gives the very events of a plain one."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation import (
    ForegroundSettings,
    PlanarSettings,
    PlanarSimulation,
    SensorSettings,
    Simulation,
    SimulationSettings,
)

_spec = importlib.util.spec_from_file_location("reference_sensor", Path(__file__).with_name("reference_sensor.py"))
reference_sensor = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference_sensor)

SMALL = Camera(12, 9, 10.0, 11.0, 5.2, 4.1, (-0.2, 0.03, 0.001, -0.002))


@pytest.mark.parametrize("foreground", [None, ForegroundSettings(20.0, 300.0, 20.0)])
@pytest.mark.parametrize("refractory_s", [0.0, 2e-3])
def test_the_compiled_sensor_gives_the_events_of_the_plain_one(foreground, refractory_s):
    panorama = np.exp(np.random.default_rng(5).standard_normal((64, 128))).astype(np.float32)
    sensor = SensorSettings(refractory_s=refractory_s, noise_rate_hz=30.0, hot_pixels=2, hot_pixel_rate_hz=400.0)
    simulation = Simulation(
        SimulationSettings(
            scene=panorama,
            camera=SMALL,
            duration_s=0.4,
            peak_speed_deg_s=600.0,
            extent_deg=120.0,
            sensor=sensor,
            foreground=foreground,
            seed=9,
        )
    )
    events = Events.concatenate(simulation.chunks())
    rows = np.array(reference_sensor.reference_events(simulation))
    assert len(rows) > 1500
    np.testing.assert_array_equal(events.t_ns, rows[:, 0])
    np.testing.assert_array_equal(np.stack([events.y, events.x, events.p], axis=1), rows[:, 1:])


@pytest.mark.parametrize("foreground", [None, ForegroundSettings(20.0, 300.0, 20.0)])
def test_in_front_of_a_plane_the_events_are_those_of_rays_cut_with_it(foreground):
    image = np.exp(np.random.default_rng(5).standard_normal((48, 48))).astype(np.float32)
    simulation = PlanarSimulation(
        PlanarSettings(
            scene=image,
            camera=SMALL,
            duration_s=0.8,
            depth_m=1.5,
            peak_speed_m_s=4.0,
            sensor=SensorSettings(0.1, 0.1, 0.01, noise_rate_hz=3.0, hot_pixels=1, hot_pixel_rate_hz=200.0),
            foreground=foreground,
            seed=9,
        )
    )
    events = Events.concatenate(simulation.chunks())
    rows = np.array(reference_sensor.reference_events(simulation))
    assert len(rows) > 2000  # of them about 400 are noise
    # The rays are cut in double precision, the sensor computes in single: stamps may differ by a few microseconds.
    found = np.stack([events.y, events.x, events.p, events.t_ns], axis=1).astype(np.int64)
    found, expected = (a[np.lexsort((a[:, 3], a[:, 1], a[:, 0]))] for a in (found, rows[:, [1, 2, 3, 0]]))
    np.testing.assert_array_equal(found[:, :3], expected[:, :3])
    late_us = np.abs(found[:, 3] - expected[:, 3]) / 1000
    assert late_us.max() <= 5
    assert (late_us == 0).mean() > 0.95
