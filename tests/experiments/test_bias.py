"""The study of bias: its figures, and what the paper says of them."""

import csv

import numpy as np
import pytest

from cmaxslam_fbp.experiments.bias import bias_figures, run_bias, velocity_grid
from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.experiments.workbench import Workbench


def test_the_grid_is_the_paper_s():
    grid = velocity_grid(11)
    assert grid.shape == (1331, 3)
    assert grid.min() == -5
    assert grid.max() == 5
    assert 1.0 in grid


def test_an_unbiased_gradient_has_slope_one_and_no_bias():
    finite = np.random.default_rng(0).normal(size=300)
    assert bias_figures(finite, finite)["rms"] == 0
    assert bias_figures(finite, finite)["slope"] == pytest.approx(1)


def test_no_gradient_has_the_bias_one():
    finite = np.random.default_rng(0).normal(size=300)
    figures = bias_figures(finite, np.zeros(300))
    assert figures["rms"] == pytest.approx(1)
    assert figures["slope"] == 0
    assert figures["mean_where_positive"] < 0 < figures["mean_where_negative"]


def read(folder):
    with (folder / "bias.csv").open() as file:
        return {(row["score"], row["kernel"], row["gradient"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module", params=["simulated", "real"])
def rows(request, tmp_path_factory, quick_study):
    if request.param == "simulated":
        return read(quick_study("bias"))
    data = request.getfixturevalue("real_data")
    out = tmp_path_factory.mktemp("bias")
    run_bias(Workbench(StudySettings(out, quick=True, data=data)))
    assert "real: the first 20,000 events" in (out / "bias" / "bias.md").read_text()
    return read(out / "bias")


@pytest.mark.parametrize(("kernel", "factor"), [("rect", 3), ("gauss", 5)])
def test_fbp_takes_most_of_the_bias_of_the_variance(rows, kernel, factor):
    plain, func = (float(rows["Var", kernel, gradient]["rms"]) for gradient in ("plain", "FBP"))
    assert factor * func < plain


def test_fbp_lowers_the_bias_of_gauss_with_the_likelihood(rows):
    plain, func = (float(rows["LL", "gauss", gradient]["rms"]) for gradient in ("plain", "FBP"))
    assert 3 * func < plain


def test_fbp_raises_the_bias_of_linear_with_the_likelihood(rows):
    plain, func = (float(rows["LL", "linear", gradient]["rms"]) for gradient in ("plain", "FBP"))
    assert func > 1.5 * plain


@pytest.mark.parametrize("score", ["Var", "LL"])
@pytest.mark.parametrize("kernel", ["rect", "linear", "gauss"])
def test_fbp_points_where_the_finite_differences_point(rows, score, kernel):
    assert float(rows[score, kernel, "FBP"]["correlation"]) > 0.95
