"""The script tools/evaluate_trajectory.py, run as people run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.io.trajectory_files import read_trajectory, write_trajectory

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "evaluate_trajectory.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def files(smooth_motion, tmp_path):
    write_trajectory(tmp_path / "est.txt", smooth_motion(0.5, 3, 50, lag_ns=1_000_000))
    write_trajectory(tmp_path / "gt.txt", smooth_motion(0, 4, 200))
    return tmp_path / "est.txt", tmp_path / "gt.txt"


def test_json_holds_the_figures_of_evaluate(files):
    done = run(*files, "--json", "--start", "0.2", "--duration", "1.5")
    assert done.returncode == 0, done.stderr
    wanted = evaluate(*map(read_trajectory, files), start_s=0.2, duration_s=1.5).to_dict()
    assert json.loads(done.stdout) == wanted
    assert wanted["poses"] == 75


def test_the_table_is_printed(files):
    done = run(*files)
    assert done.returncode == 0, done.stderr
    assert "absolute, best fit: RMS [deg]" in done.stdout


def test_a_known_error_is_one_line_without_a_traceback(files, tmp_path):
    done = run(files[0], tmp_path / "missing.txt")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "missing.txt: no such file" in done.stderr
