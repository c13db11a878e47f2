"""A short recording of a small sensor with a distorted lens, as its passages and its true motion."""

from types import SimpleNamespace

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.passages import edge_passages
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.trajectory.initialisation import fit_spline

CAMERA = Camera(120, 90, 99.5, 99.4, 64.0, 50.0, (-0.3, 0.12, 0.0, 0.0, 0.0))
STEP_NS = 50_000_000


@pytest.fixture(scope="session")
def turning():
    """Four seconds among shapes, with 60 degrees of travel."""
    simulation = Simulation(SimulationSettings(scene="shapes", camera=CAMERA, duration_s=4.0, extent_deg=30.0, seed=8))
    events = Events.concatenate(list(simulation.chunks()))
    passages = Events.concatenate(list(edge_passages([events], simulation.sensor_size, 50_000_000)))
    passages = passages[passages.p >= 2]
    truth = simulation.ground_truth
    start_ns, end_ns = int(events.t_ns[0]), min(int(events.t_ns[-1]), truth.end_ns)
    poses = truth.between(start_ns, end_ns)
    count = -(-(end_ns - start_ns) // STEP_NS) + 3
    spline = fit_spline(poses, order=4, start_ns=start_ns, step_ns=STEP_NS, count=count)
    passages = passages.between(start_ns, end_ns)
    return SimpleNamespace(simulation=simulation, camera=CAMERA, events=events, passages=passages, spline=spline)


@pytest.fixture
def few(turning):
    """Some of the passages, for what is slow."""
    return turning.passages[:: max(1, len(turning.passages) // 16000)]


@pytest.fixture
def random():
    return np.random.default_rng(5)
