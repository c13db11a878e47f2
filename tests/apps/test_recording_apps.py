"""The programs that start from a recording, on a short simulated one."""

import runpy
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

APPS = Path(__file__).parents[2] / "apps"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    simulation = Simulation(SimulationSettings(scene="shapes", duration_s=0.6))
    path = tmp_path_factory.mktemp("apps") / "shapes.npz"
    write_recording(simulation, simulation.chunks(), path)
    return path


@pytest.fixture
def app(monkeypatch, tmp_path):
    """Run a program of the apps folder in an empty folder."""

    def call(name, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(APPS / f"{name}.py"), run_name="__main__")

    return call


def error_deg(trajectory, recording):
    truth = open_recording(recording).ground_truth
    return evaluate(read_trajectory(trajectory), truth).absolute_best_fit_rms_deg


def test_quickstart_writes_trajectory_and_map(app, recording, tmp_path, capsys):
    app("quickstart", recording)
    assert error_deg(tmp_path / "trajectory.txt", recording) < 1.5
    picture = cv2.imread(str(tmp_path / "panorama.png"), cv2.IMREAD_GRAYSCALE)
    assert picture.shape == (512, 1024)
    assert 1000 < (picture < 220).sum() < 50_000
    assert "deg RMS" in capsys.readouterr().out


def test_own_events_give_a_trajectory_without_another_file(app, recording, tmp_path):
    source = open_recording(recording)
    events, camera = Events.concatenate(source.chunks()), source.require_camera()
    np.save(tmp_path / "mine.npy", np.column_stack([events.t_ns / 1e9, events.x, events.y, events.p]))
    intrinsics = ["--intrinsics", camera.fx, camera.fy, camera.cx, camera.cy]
    app("own_events", tmp_path / "mine.npy", *intrinsics, "--distortion", *camera.distortion)
    assert error_deg(tmp_path / "mine.txt", recording) < 1.5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.npy", "mine.txt"]


def test_the_stabilised_scene_stands_still(app, recording, tmp_path):
    app("stabilise_recording", recording, tmp_path / "frames")
    paths = sorted((tmp_path / "frames").iterdir())
    assert len(paths) in (28, 29)
    # The sum of the moving half's images is sharp only where each has the scene at the same place.
    frames = np.array([255.0 - cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in paths[-14:]])
    shifted = [np.roll(frame, 3 * number, axis=1) for number, frame in enumerate(frames)]
    assert frames.mean(axis=0).var() > 1.5 * np.mean(shifted, axis=0).var()


def test_predicted_events_are_those_that_come(app, recording, tmp_path, run, capsys):
    run("run", recording, "-o", tmp_path / "out", "--quiet")
    app("predict_events", tmp_path / "out", recording, "--start", 0.3)
    said = capsys.readouterr().out
    assert float(said.split()[-1]) > 0.5
