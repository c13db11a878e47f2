"""A network is trained, interrupted, trained on, and run on a recording."""

import runpy
import sys
from pathlib import Path

import cv2
import pytest

from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

torch = pytest.importorskip("torch")
APPS = Path(__file__).parents[2] / "apps"


def call(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(APPS / f"{name}.py"), run_name="__main__")


def test_a_network_is_trained_and_shows_the_flow_of_a_recording(monkeypatch, tmp_path, capsys):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network = tmp_path / "flow.pt"
    small = ("--quick", "--steps", 100, "--batch", 2, "--crop", 32, "--channels", 4)
    call(monkeypatch, "train_flow", network, *small)
    assert "step 100: loss" in capsys.readouterr().out
    call(monkeypatch, "train_flow", network, *small)  # nothing is left to do
    assert "step 100" not in capsys.readouterr().out
    simulation = Simulation(SimulationSettings(scene="shapes", duration_s=0.3))
    write_recording(simulation, simulation.chunks(), tmp_path / "shapes.npz")
    call(monkeypatch, "flow_from_events", network, tmp_path / "shapes.npz", tmp_path / "flow.mp4")
    torch.set_num_threads(threads)
    words = capsys.readouterr().out
    video = cv2.VideoCapture(str(tmp_path / "flow.mp4"))
    count = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
    assert f"{count} pictures" in words
    assert count >= 6
    _, picture = video.read()
    assert picture.shape == (184, 720, 3)
    assert picture.std() > 5
