"""A camera that turns and moves in a room: what --hand-held makes of it."""

import json

import numpy as np
import pytest

from cmaxslam_fbp import Slam, load_config
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import RoomSettings, RoomSimulation


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    settings = RoomSettings(scene="shapes", duration_s=4.0, peak_speed_deg_s=200.0, scene_distance_m=0.5, seed=3)
    simulation = RoomSimulation(settings)
    path = tmp_path_factory.mktemp("room") / "room.bag"
    write_recording(simulation, simulation.chunks(), path)
    return path


def test_parallax_is_told_from_rotation(run, bag, tmp_path):
    alone = Slam(load_config()).run(open_recording(bag)).evaluation
    run("run", bag, "--hand-held", "--scale", "0.6", "--out", tmp_path / "out", "--quiet")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["absolute_best_fit_rms_deg"] < 0.4 * alone.absolute_best_fit_rms_deg
    assert metrics["position_rms_m"] < 0.35 * metrics["position_path_rms_m"]
    assert "positions in metres" in (tmp_path / "out" / "trajectory.txt").read_text().splitlines()[0]
    distances = np.load(tmp_path / "out" / "distance.npy")
    assert distances.shape == (256, 512)
    assert 0.5 < np.nanmean(distances) < 0.8
    assert (tmp_path / "out" / "distance.png").exists()
    assert "Hand-held motion" in (tmp_path / "out" / "report.html").read_text()
    assert 1 < json.loads((tmp_path / "out" / "run.json").read_text())["parallax_deg"] < 12


def test_without_the_flag_there_are_no_positions_and_no_distances(simulated_bag):
    result = Slam(load_config()).run(open_recording(simulated_bag), duration_s=0.5)
    assert result.hand_held is None
    assert result.trajectory().positions_m is None
