"""Every study runs through in its quick form, and what holds in our measurements is asserted with margins."""

import csv

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import MissingExtraError
from cmaxslam_fbp.experiments import studies
from cmaxslam_fbp.experiments.studies import NAMES

FILES = {
    "bias": ["bias_Var.png", "bias_LL.png"],
    "slam": ["maps.png"],
    "ecrot": ["maps.png"],
    "flow": ["flow.png", "pictures.png"],
}


def read(folder):
    with (folder / f"{folder.name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_a_study_writes_csv_markdown_and_plots(quick_study, name):
    folder = quick_study(name)
    text = (folder / f"{name}.md").read_text()
    assert text.startswith("### ")
    assert "Data:" in text
    assert "simulated" in text or name == "cost"
    assert read(folder)
    for picture in FILES.get(name, [f"{name}.png"]):
        image = cv2.imread(str(folder / picture))
        assert image is not None
        assert image.std() > 5


def test_all_of_them_again_computes_nothing(quick_study, quick_folder):
    before = {path: path.stat().st_mtime_ns for path in (quick_folder / "rows").iterdir()}
    quick_study("all")
    assert {path: path.stat().st_mtime_ns for path in (quick_folder / "rows").iterdir()} == before
    summary = (quick_folder / "README.md").read_text()
    assert all(f"({name}/{name}.md)" in summary for name in NAMES)


def test_a_study_whose_library_is_missing_is_left_out_of_all_with_a_line(run, tmp_path, monkeypatch):
    def needs_torch(bench):
        raise MissingExtraError("the torch backend needs PyTorch")

    others = dict.fromkeys(NAMES, lambda bench: [])
    monkeypatch.setattr(studies, "STUDIES", {**others, "flow": needs_torch})
    done = run("reproduce", "all", "--out", tmp_path)
    assert done.stderr == "flow is left out: the torch backend needs PyTorch\n"
    done = run("reproduce", "flow", "--out", tmp_path, code=1)
    assert done.stderr == "error: the torch backend needs PyTorch\n"


def pooled(rows, score, method):
    """Root mean square over the sequences of the error of a method."""
    errors = [float(row["rms_per_axis"]) for row in rows if (row["score"], row["method"]) == (score, method)]
    assert len(errors) == 2
    return np.sqrt(np.mean(np.square(errors)))


def test_an_angular_study_has_all_rows_of_the_paper_and_ours(quick_study):
    rows = read(quick_study("angular"))
    assert len({(row["score"], row["method"]) for row in rows}) == 22
    assert pooled(rows, "Var", "FuncLinear 1") < 5


def test_a_linear_study_is_judged_in_metres_per_second(quick_study):
    rows = read(quick_study("linear"))
    assert {row["unit"] for row in rows} == {"m/s"}
    assert pooled(rows, "Var", "FuncLinear 1") < 0.2


def test_the_slam_s_errors_are_those_of_a_simulated_pure_rotation(quick_study):
    rows = read(quick_study("slam"))
    methods = {"CMax-SLAM", "FBP", "default", "--refine"}
    assert {row["method"] for row in rows if row["sequence"] == "dynamic_rotation"} == methods
    assert {row["method"] for row in rows if row["sequence"] == "shapes_handheld"} == methods
    assert all(float(row["best_fit_deg"]) < (1 if row["sequence"] == "dynamic_rotation" else 5) for row in rows)
    text = (quick_study("slam") / "slam.md").read_text()
    assert "| CMax-GAE, published | 3.96 / 2.78 | 4.01 / 3.61 | fails | 4.84 / 1.76 |" in text


def test_networks_learn_flow_from_events_alone(quick_study):
    """With functional backpropagation, errors on recordings that are held out are at most half of those of no flow."""
    pytest.importorskip("torch")
    rows = [row for row in read(quick_study("flow")) if row["pixels"] == "dense"]
    arms = {row["arm"] for row in rows}
    errors = {arm: np.mean([float(row["epe_px"]) for row in rows if row["arm"] == arm]) for arm in arms}
    assert arms == {"no flow at all", "linear, plain", "linear, FBP", "rect, FBP"}
    assert errors["no flow at all"] > 4
    assert errors["rect, FBP"] <= 0.5 * errors["no flow at all"]
    assert errors["linear, FBP"] <= 0.5 * errors["no flow at all"]


def test_the_cost_study_times_every_backend(quick_study):
    backends = {row["backend"] for row in read(quick_study("cost"))}
    assert {"numba", "reference"} <= backends


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "there is no study 'nothing'; choose one of bias, reconstruction"),
        (["bias", "--ecd", "missing"], "the folder missing with the ECD does not exist"),
        (["bias", "--jobs", "0"], "--jobs must be 1 or more"),
        (["bias", "--out", "file/inside"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_line(run, tmp_path, arguments, words):
    (tmp_path / "file").write_text("")
    done = run("reproduce", *arguments, code=1)
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
