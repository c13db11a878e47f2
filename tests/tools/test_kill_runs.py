"""A few killed runs; `tools/kill_runs.py` kills as many as you like."""

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "kill_runs.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("kill_runs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recording(tool, tmp_path_factory):
    return tool.simulate(tmp_path_factory.mktemp("recording"), 6.0)


@pytest.mark.parametrize(
    ("name", "twice", "state", "code"),
    [("SIGINT", False, "interrupted", 130), ("SIGTERM", True, "interrupted", 130), ("SIGKILL", False, "running", -9)],
)
def test_a_run_that_is_killed_leaves_what_it_had(tool, recording, tmp_path, name, twice, state, code):
    out = tmp_path / "run"
    killed = tool.kill_one(recording, out, signal.Signals[name], 0.1, twice=twice, once_there=out / "run.json")
    assert killed.faults == []
    assert (killed.state, killed.exit_code) == (state, code)
    assert killed.poses > 10


def test_a_cut_file_is_a_fault(tool, recording, tmp_path):
    out = tmp_path / "run"
    tool.kill_one(recording, out, signal.SIGKILL, 0.1, once_there=out / "run.json")
    table = out / "windows.csv"
    table.write_bytes(table.read_bytes()[:-3])
    assert "windows.csv ends within a line" in tool.find_faults(out, signal.SIGKILL)
