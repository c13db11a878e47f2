import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from cmaxslam_fbp.choices import KERNELS, MODELS, RECONSTRUCTIONS, SCORES, SOLVERS
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    simulation = Simulation(SimulationSettings(scene="boxes", duration_s=0.2, seed=1))
    path = tmp_path_factory.mktemp("velocity") / "turning.bag"
    source = SimpleNamespace(
        camera=simulation.camera,
        sensor_size=SensorSize(240, 180),
        imu=simulation.imu,
        ground_truth=simulation.ground_truth,
    )
    write_recording(source, simulation.chunks(), path)
    return path


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_table_and_the_errors_against_the_gyroscope(run, bag, tmp_path):
    text = run("velocity", bag).stdout
    assert text.startswith("velocity_turning/velocity.csv: ")
    assert "RMS error against the gyroscope: " in text
    rows = read(tmp_path / "velocity_turning" / "velocity.csv")
    assert len(rows) >= 5
    assert all(len(row["t_s"].split(".")[1]) == 9 for row in rows)
    assert float(rows[0]["t_s"]) > 1.4e9
    statuses = [row["status"] for row in rows]
    assert set(statuses) <= {"converged", "recovered", "stalled"}
    assert statuses.count("stalled") <= 0.2 * len(rows)  # the camera has hardly begun to move


def test_flags_reach_the_estimator_and_json_has_the_figures(run, bag, tmp_path):
    flags = ("--kernel", "linear", "--score", "negative_binomial", "--solver", "lbfgsb", "--events-per-packet", 30000)
    flags += ("--set", "frontend.packets=count")
    figures = json.loads(run("velocity", bag, *flags, "--out", "there", "--json").stdout)
    assert figures["reference"] == "gyroscope"
    assert figures["rms_per_axis_deg_s"] < 8
    assert figures["events_per_packet"] == 30_000
    rows = read(tmp_path / "there" / "velocity.csv")
    assert figures["packets"] == len(rows)
    assert float(rows[0]["score"]) < 0  # a log-likelihood


def test_nothing_is_overwritten_unless_asked(run, bag):
    run("velocity", bag, "--duration", 0.1, "--quiet", "-o", "a")
    assert "exists already" in run("velocity", bag, "-o", "a", code=1).stderr
    run("velocity", bag, "--duration", 0.1, "-o", "a", "--overwrite")


def test_translations_are_compared_with_poses_that_have_positions(run, bag, tmp_path):
    text = run("velocity", bag, "--model", "translation", "--duration", 0.1).stdout
    assert "velocities" in text
    rows = read(tmp_path / "velocity_turning" / "velocity.csv")
    assert np.isfinite([float(row["vx_m_s"]) for row in rows]).all()


def test_tensors_give_the_same_table(run, bag, tmp_path):
    pytest.importorskip("torch")
    common = ("velocity", bag, "--duration", 0.06, "--set", "frontend.packets=count")
    run(*common, "-o", "numba")
    run(*common, "-o", "torch", "--backend", "torch", "--device", "cpu")
    ours, theirs = (
        np.array([[float(row[f"w{axis}_rad_s"]) for axis in "xyz"] for row in read(tmp_path / name / "velocity.csv")])
        for name in ("numba", "torch")
    )
    assert len(ours) > 2
    differences = np.linalg.norm(theirs - ours, axis=1) / np.linalg.norm(ours, axis=1)
    assert np.median(differences) < 1e-3
    assert differences.max() < 5e-3  # one event more or less in a bin, one step more or less of the optimiser


def test_bad_values_are_one_line(run, bag):
    assert "frontend.events_per_packet" in run("velocity", bag, "--events-per-packet", 0, code=1).stderr
    done = run("velocity", bag, "--set", "frontend.solvers=newton", code=1)
    assert "did you mean frontend.solver?" in done.stderr
    assert "'square' is none of rect, linear, gauss" in run("velocity", bag, "--kernel", "square", code=2).stderr


def test_the_help_lists_the_choices_of_the_registries(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    words = run("velocity", "--help").stdout
    for choices in (MODELS, KERNELS, RECONSTRUCTIONS, SCORES, SOLVERS):
        assert "|".join(choices.names()) in words
    assert "[numba|torch]" in words
    assert "[numba|torch]" in run("run", "--help").stdout


def test_filters_of_the_stream_come_before_the_packets(run, bag, tmp_path):
    common = (
        "velocity",
        bag,
        "--duration",
        0.1,
        "--set",
        "frontend.packets=count",
        "--set",
        "frontend.polarity=signed",
    )
    run(*common, "-o", "all")
    run(*common, "-o", "third", "--set", "events.subsample=3")
    counts = [len(read(tmp_path / name / "velocity.csv")) for name in ("all", "third")]
    assert counts[1] == pytest.approx(counts[0] / 3, abs=1)
    assert counts[1] >= 2


def test_events_beyond_the_field_of_a_fisheye_are_counted(run, bag, tmp_path):
    lens = "cam0: {intrinsics: [80, 80, 120, 90], distortion_model: equidistant, resolution: [240, 180]}"
    (tmp_path / "fisheye.yaml").write_text(lens)
    done = run("velocity", bag, "--calib", tmp_path / "fisheye.yaml", "--duration", "0.1", "--quiet")
    events = Events.concatenate(open_recording(bag).chunks(0.0, 0.1))
    radius_px = np.hypot(events.x - 120.0, events.y - 90.0)
    beyond = int((radius_px >= 80 * np.radians(80)).sum())
    assert beyond > 0
    assert f"{beyond:,} events lay beyond the field of the calibrated lens" in done.stderr
