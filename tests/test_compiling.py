"""Compiled code is cached where it can be, never out of date, and everything works where it cannot be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

WARP = """
import numpy as np
from cmaxslam_fbp.backend import panoramic_warp_kernels as kernels
points = np.empty(2, np.float32)
turn = np.eye(3, dtype=np.float32).reshape(1, 9).repeat(2, 0)
bearing = np.array([[0.0], [0.0], [1.0]], np.float32)
numbers = [np.float32(n) for n in (1024, 512, 163, 0, 0, 0)]
kernels.warp(np.array([0, 1]), np.zeros(1, np.float32), bearing, turn, *numbers, points)
print(points.tolist())
"""

NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []  # what a read-only install without a home comes to
from cmaxslam_fbp.compiling import cache_folder
assert cache_folder() is None
from cmaxslam_fbp.cli import main
main()
"""


def run_python(code, *arguments, package=ROOT, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(package), **environment},
        cwd=package,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def copied_package(tmp_path):
    """A copy of the package that may be edited."""
    shutil.copytree(
        ROOT / "cmaxslam_fbp", tmp_path / "copy" / "cmaxslam_fbp", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path / "copy"


def test_an_edit_of_an_inlined_kernel_takes_effect_though_its_caller_is_cached(copied_package, tmp_path):
    def run():
        return run_python(WARP, package=copied_package, NUMBA_DEBUG_CACHE="1", NUMBA_CACHE_DIR=str(tmp_path / "cache"))

    before, again = run(), run()
    assert "[256.0, 512.0]" in before
    assert "data saved" in before
    assert "data loaded" in again
    assert "data saved" not in again
    inlined = copied_package / "cmaxslam_fbp" / "geometry" / "equirectangular_kernels.py"
    text = inlined.read_text()
    assert "def project_fast(x, y, z, width, height, focal):" in text
    inlined.write_text(
        text + "\n\n@compiled\ndef project_fast(x, y, z, width, height, focal):\n    return height, width\n"
    )
    assert "[1024.0, 512.0]" in run()


def test_a_whole_run_works_with_no_folder_for_compiled_code(simulated_bag, tmp_path):
    out = tmp_path / "run"
    run_python(NOWHERE, "run", simulated_bag, "--duration", "0.4", "--out", out, "--quiet")
    assert len((out / "trajectory.txt").read_text().splitlines()) > 70
