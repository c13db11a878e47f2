import json
import runpy
from pathlib import Path

import pytest

make_run = runpy.run_path(str(Path(__file__).parents[1] / "report" / "made_run.py"))["make_run"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    return make_run(folder / "good", error_rad=0.001), make_run(folder / "poor", error_rad=0.01)


def test_table_plots_and_page_of_two_runs(run, runs, tmp_path):
    text = run("compare", *runs, "--out", tmp_path / "out").stdout
    for words in ("good", "poor", "absolute error, RMS", "real-time factor"):
        assert words in text
    names = {"errors.png", "speed.png", "errors_over_time.png", "compare.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    page = (tmp_path / "out" / "compare.html").read_text()
    assert page.count("data:image/png") == 3
    assert "{{" not in page
    # The best of each row is bold: the smaller error.
    row = page.split("absolute error, RMS [deg]")[1].split("</tr>")[0]
    assert row.index("<b>") < row.rindex("<td>")


def test_figures_as_json(run, runs):
    figures = json.loads(run("compare", *runs, "--json").stdout)
    errors = figures["absolute error, RMS [deg]"]
    assert errors["poor"] == pytest.approx(10 * errors["good"], rel=0.05)
    assert figures["real-time factor"] == {"good": 0.5, "poor": 0.5}


def test_runs_without_reference_compare_by_speed(run, runs, tmp_path):
    other = make_run(tmp_path / "good", reference=False)  # the same name, in another folder
    figures = json.loads(run("compare", runs[0], other, "--json").stdout)
    assert set(figures["wall time [s]"]) == {str(runs[0]), str(other)}
    assert figures["absolute error, RMS [deg]"][str(other)] is None


def test_errors_are_one_line(run, runs, tmp_path):
    assert "is not the folder of a run" in run("compare", runs[0], tmp_path, code=1).stderr
    assert "is given twice" in run("compare", runs[0], runs[0], code=1).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "is not empty" in run("compare", *runs, "--out", tmp_path / "full", code=1).stderr
