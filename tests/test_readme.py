"""What the README tells people to type works."""

import re
import shlex
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.calibration import format_ros_yaml
from cmaxslam_fbp.io.trajectory_files import write_trajectory

README = (Path(__file__).parent.parent / "README.md").read_text()
COMMANDS = [line.partition("#")[0].strip() for line in README.splitlines() if line.startswith("cmaxslam-fbp ")]
SHORTER = {
    "run": ["--duration", "0.4"],
    "batch": ["--duration", "0.4", "--jobs", "1"],
    "simulate": ["--duration", "0.1"],
    "velocity": ["--duration", "0.3"],
    "evaluate": ["--align-at", "0.1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, simulated_bag):
    """The files that the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copy(simulated_bag, folder / "boxes_rotation.bag")
    recording = open_recording(simulated_bag)
    events = next(iter(recording.chunks(0.5, 0.5)))
    np.savez(folder / "mine.npz", t=events.t_ns / 1e9, x=events.x, y=events.y, p=events.p, width=240, height=180)
    (folder / "camera.yaml").write_text(format_ros_yaml(davis240c()))
    write_trajectory(folder / "groundtruth.txt", recording.ground_truth)
    noise = np.random.default_rng(0).integers(0, 255, (64, 128, 3)).astype(np.uint8)
    cv2.imwrite(str(folder / "panorama.jpg"), cv2.resize(noise, (1024, 512)))
    return folder


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(run, run_alone, folder, command):
    _, name, *arguments = shlex.split(command)
    (run_alone if name == "doctor" else run)(name, *arguments, *SHORTER.get(name, []), cwd=folder)


def test_the_readme_s_python_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", README, re.S) if "Slam(" in code]
    scope = {}
    exec(block.replace(".run(recording)", ".run(recording, duration_s=1.2)"), scope)
    assert float(capsys.readouterr().out) < 0.5
    assert scope["rotation"].as_matrix().shape == (3, 3)
