import os
import runpy
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

make_run = runpy.run_path(str(Path(__file__).parents[1] / "report" / "made_run.py"))["make_run"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("view") / "run")


def test_a_screenshot_without_a_display_shows_the_map_the_path_and_the_camera(folder, tmp_path):
    pytest.importorskip("open3d")
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-m", "cmaxslam_fbp", "view", folder, "--screenshot", tmp_path / "a.png", "--at", "1"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode < 0 or "cannot open a window" in done.stderr or "cannot be loaded" in done.stderr:
        pytest.skip("no OpenGL")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "a.png") in done.stdout
    blue, green, red = cv2.split(cv2.imread(str(tmp_path / "a.png")).astype(int))
    assert ((red - blue) > 100).sum() > 1000  # the frustum
    assert ((blue - red) > 100).sum() > 200  # the path
    assert ((red < 40) & (green < 40) & (blue < 40)).sum() > 1000  # events
    assert ((red == 255) & (green == 255) & (blue == 255)).mean() > 0.2  # the wall


def test_without_open3d_one_line_says_what_to_do(run_alone, folder, tmp_path):
    (tmp_path / "open3d.py").write_text("raise ModuleNotFoundError(\"No module named 'open3d'\", name='open3d')\n")
    done = run_alone("view", folder, code=1)
    assert done.stderr.count("\n") == 1
    assert "pip install 'cmaxslam-fbp[viewer]'" in done.stderr
    assert "report.html" in done.stderr


def test_a_folder_that_is_no_run_is_one_line(run, tmp_path):
    assert run("view", tmp_path, code=1).stderr.startswith(f"error: {tmp_path} is not the folder of a run")
