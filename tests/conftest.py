"""Small recordings for the tests, the program as a function, and the folder of real recordings where there is one."""

import fcntl
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

from cmaxslam_fbp.events import Events

# The first call of a compiled function takes as long as its compilation: no deadlines.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file, and all studies, to one worker: there they share what their fixtures have made."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return "studies" if "/experiments/" in file else file

    return ByFile(config, log)


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
    """Two seconds of a camera that turns among shapes, with exact ground truth, as an ECD bag.

    All workers share it: the first that comes makes it, the others wait.
    """
    from cmaxslam_fbp.io.writing import write_recording
    from cmaxslam_fbp.simulation import Simulation, SimulationSettings

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "simulated"
    folder.mkdir(exist_ok=True)
    path = folder / "shapes.bag"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            settings = SimulationSettings(scene="shapes", duration_s=2.05, peak_speed_deg_s=200.0, seed=3)
            simulation = Simulation(settings)
            write_recording(simulation, simulation.chunks(), path)
    return path


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the program with these arguments, in an empty folder; return what it printed.

    It runs in the process of the tests: a new one would spend more time on its imports than on its work.
    """
    from cmaxslam_fbp.cli import main

    def call(*arguments, code=0, cwd=tmp_path):
        capsys.readouterr()
        exit_code = 0
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            patch.setattr(sys, "argv", ["cmaxslam-fbp", *map(str, arguments)])
            try:
                main()
            except SystemExit as end:
                exit_code = end.code or 0
            except Exception:
                traceback.print_exc()
                exit_code = 1
        printed = capsys.readouterr()
        assert exit_code == code, printed.out + printed.err
        return SimpleNamespace(stdout=printed.out, stderr=printed.err)

    return call


@pytest.fixture
def run_alone(tmp_path):
    """Run the program as `run` does, but in a process of its own: for what looks at the process itself."""

    def call(*arguments, code=0, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "cmaxslam_fbp", *map(str, arguments)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call
