"""The recipes of docs/contributing.md, run as they stand there: parts from outside the package make up a whole run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from cmaxslam_fbp import Slam, load_config, open_recording
from cmaxslam_fbp.choices import FORMATS, MODELS, RECONSTRUCTIONS, SCORES
from cmaxslam_fbp.events.filters import EventFilter
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.pipeline.output import OUTPUTS

PAGE = Path(__file__).parent.parent / "docs" / "contributing.md"
ADDED = {RECONSTRUCTIONS: "cosine", SCORES: "sum_of_cubes", MODELS: "roll", FORMATS: "table"}


@pytest.fixture(scope="module", autouse=True)
def recipes(tmp_path_factory):
    """What the page's code defines; as a file, so that compiled loops can tell where it comes from."""
    code = "\n\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M))
    file = tmp_path_factory.mktemp("recipes") / "recipes.py"
    file.write_text(code)
    names = {"__name__": "recipes"}
    exec(compile(code, str(file), "exec"), names)
    yield names
    for choices, name in ADDED.items():
        choices.remove(name)
    del OUTPUTS["speeds.txt"]


@pytest.fixture(scope="module")
def table(recipes, simulated_bag, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "shapes.table"
    open_recording(simulated_bag).convert(path, start_s=0.5, duration_s=0.7)
    return path


def test_a_run_is_made_of_a_format_a_kernel_a_score_and_an_output_from_outside(run, table, simulated_bag, tmp_path):
    settings = {"frontend.score": "sum_of_cubes", "backend.score": "sum_of_cubes", "backend.reconstruction": "cosine"}
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run("run", table, "--out", tmp_path / "out", "--quiet", *flags)
    figures = json.loads((tmp_path / "out" / "run.json").read_text())
    assert figures["events"] + figures["hot_pixels"]["events"] == sum(
        len(events) for events in open_recording(table).chunks()
    )
    assert figures["windows_lost"] == 0
    speeds = [float(line) for line in (tmp_path / "out" / "speeds.txt").read_text().splitlines()]
    assert len(speeds) > 50
    result = Slam(load_config([], [f"{key}={value}" for key, value in settings.items()])).run(open_recording(table))
    truth = open_recording(simulated_bag).ground_truth
    t_ns = result.trajectory().t_ns
    turns = result.trajectory().rotations
    true_turns = truth.rotation_at(t_ns)
    angles = ((turns[0].inv() * turns).inv() * (true_turns[0].inv() * true_turns)).magnitude()
    assert np.degrees(np.sqrt((angles**2).mean())) < 0.5
    assert np.degrees((true_turns[0].inv() * true_turns[-1]).magnitude()) > 5


@pytest.mark.parametrize("compute", ["numba", "torch"])
def test_a_motion_model_from_outside_has_its_own_number_of_parameters(table, compute):
    if compute == "torch":
        pytest.importorskip("torch")
    recording = open_recording(table)
    config = load_config([], ["frontend.model=roll", f"frontend.compute={compute}", "frontend.reconstruction=cosine"])
    chunks = EventFilter(config.events, recording.sensor_size).run(recording.chunks(0.0, 0.1))
    estimates = list(VelocityEstimator(recording.require_camera(), config.frontend).run(chunks))
    assert {estimate.velocity.shape for estimate in estimates} == {(1,)}
    assert {estimate.covariance.shape for estimate in estimates} == {(1, 1)}
    assert any(estimate.status.is_measured for estimate in estimates)


def test_a_reconstruction_from_outside_is_unbiased_in_all_backends():
    """Its shifts add up to one, so a constant cotangent has no gradient; a rising one has the slope of the rise."""
    points = np.random.default_rng(0).uniform(8, 12, (50, 2))
    rise = np.arange(20.0)[:, None] * np.ones(20)
    for backend in ("reference", "numba"):
        binning = Binning((20, 20), "rect", "cosine", backend=backend)
        flat, _ = binning.vjp(points, None, np.ones((20, 20)))
        np.testing.assert_allclose(flat, 0, atol=1e-12)
        sloped, _ = binning.vjp(points, None, rise)
        np.testing.assert_allclose(sloped.mean(), 0.5, atol=0.1)


def test_the_help_and_the_errors_name_what_was_added(run, table):
    assert "roll" in run("velocity", "--help").stdout
    assert "did you mean sum_of_cubes?" in run("run", table, "--set", "frontend.score=sum_of_cube", code=1).stderr
