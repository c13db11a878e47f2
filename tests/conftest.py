"""Small recordings for the tests, and the folder of real ones where there is one."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from cmaxslam_fbp.events import Events

# The first call of a compiled function takes as long as its compilation: no deadlines.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = os.environ.get("CMAXSLAM_FBP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CMAXSLAM_FBP_DATA does not name the folder of real recordings")
    return Path(folder)


@pytest.fixture
def make_events():
    """Make random ordered events: Unix stamps in whole microseconds by default."""

    def make(count=1000, *, seed=0, start_ns=1_468_941_032_229_417_000, duration_ns=50_000_000, width=240, height=180):
        random = np.random.default_rng(seed)
        t_ns = np.sort(random.integers(0, duration_ns // 1000, count)) * 1000 + start_ns
        return Events(
            t_ns.astype(np.int64),
            random.integers(0, width, count).astype(np.uint16),
            random.integers(0, height, count).astype(np.uint16),
            random.integers(0, 2, count).astype(np.uint8),
        )

    return make


@pytest.fixture
def assert_same_events():
    def check(actual, expected):
        for name in ("t_ns", "x", "y", "p"):
            np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)

    return check


@pytest.fixture(scope="session")
def simulated_bag(tmp_path_factory):
    """Two seconds of a camera that turns among shapes, with exact ground truth, as an ECD bag."""
    from cmaxslam_fbp.io.writing import write_recording
    from cmaxslam_fbp.simulation import Simulation, SimulationSettings

    path = tmp_path_factory.mktemp("simulated") / "shapes.bag"
    settings = SimulationSettings(scene="shapes", duration_s=2.05, peak_speed_deg_s=200.0, seed=3)
    simulation = Simulation(settings)
    write_recording(simulation, simulation.chunks(), path)
    return path
