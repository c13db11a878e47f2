import runpy
from pathlib import Path

import pytest

_MADE = runpy.run_path(str(Path(__file__).with_name("made_run.py")))


@pytest.fixture
def make_run(tmp_path):
    """Write the folder of a made-up run; the options are those of `made_run.make_run`."""

    def make(name="run", **options):
        return _MADE["make_run"](tmp_path / name, **options)

    return make


@pytest.fixture
def made_trajectory():
    return _MADE["made_trajectory"]
