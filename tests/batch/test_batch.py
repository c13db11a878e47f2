"""Every recording with every configuration, once: what is done is known, what fails costs itself alone."""

import csv
import json

import pytest

from cmaxslam_fbp.batch import batch as batch_module
from cmaxslam_fbp.batch.arms import make_arms
from cmaxslam_fbp.batch.batch import Batch
from cmaxslam_fbp.batch.manifest import read_items
from cmaxslam_fbp.batch.results import summary_table, write_page, write_rows
from cmaxslam_fbp.errors import RecordingError

CALLS = []


def made_up_run(settings, out):
    """Stand for a run: its error is the length of the recording."""
    name = settings["input"].rpartition("/")[2]
    CALLS.append((name, settings["config"]["backend"]["knot_s"]))
    if name == "bad.npz":
        raise RecordingError("it is bad")
    if name == "odd.npz":
        raise ZeroDivisionError("odd")
    folder = out / settings["folder"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text("{}")
    run = {"version": "1", "real_time_factor": 2.0, "stages": {"backend": {"seconds": 1.5}}, "warnings": ["a", "b"]}
    metrics = {"absolute_best_fit_rms_deg": 0.5, "relative_rms_deg_s": {"1": 0.25, "0.1": None}, "later": 7}
    return {
        "files": [f"{settings['folder']}/run.json"],
        "folder": settings["folder"],
        "run": run,
        "metrics": metrics,
        "seconds": 1.0,
    }


@pytest.fixture
def make_batch(tmp_path, monkeypatch):
    """Make a batch over files of any content, whose runs take no time."""
    monkeypatch.setattr(batch_module, "run", made_up_run)
    monkeypatch.chdir(tmp_path)
    CALLS.clear()

    def make(*names, grid=("backend.knot_s=0.02,0.05",), seeds=(), refine=False):
        for name in names:
            if not (tmp_path / name).exists() and not name.startswith("no"):
                (tmp_path / name).write_text(name)
        work = Batch(read_items(names), make_arms([], grid, []), tmp_path / "out", seeds=seeds, refine=refine)
        work.plan()
        return work

    return make


def test_failures_cost_their_own_rows_and_are_tried_again(make_batch):
    work = make_batch("a.npz", "bad.npz", "no.npz", "odd.npz", "b.npz", grid=())
    work.run()
    failed = {cell.item.name: cell.error for cell in work.in_state("failed")}
    assert failed["bad"] == "it is bad"
    assert "no.npz cannot be read" in failed["no"]
    assert failed["odd"] == "ZeroDivisionError: odd"
    assert [cell.item.name for cell in work.in_state("done")] == ["a", "b"]
    again = make_batch("a.npz", "bad.npz", "no.npz", "odd.npz", "b.npz", grid=())
    CALLS.clear()
    again.run()
    assert [name for name, _ in CALLS] == ["bad.npz", "odd.npz"]
    assert not any(cell.is_new for cell in again.cells)


def test_what_is_done_and_unchanged_is_not_done_again(make_batch, tmp_path):
    first = make_batch("a.npz", "b.npz")
    first.run()
    assert CALLS == [("a.npz", 0.02), ("a.npz", 0.05), ("b.npz", 0.02), ("b.npz", 0.05)]
    CALLS.clear()
    assert not make_batch("a.npz", "b.npz").waiting
    (tmp_path / "b.npz").write_text("changed")
    make_batch("a.npz", "b.npz", grid=["backend.knot_s=0.02,0.1"]).run()
    assert CALLS == [("a.npz", 0.1), ("b.npz", 0.02), ("b.npz", 0.1)]
    assert make_batch("a.npz", "b.npz", refine=True).waiting


def test_a_copy_of_a_recording_is_known_and_a_touched_one_only_read_again(make_batch, tmp_path):
    make_batch("a.npz", grid=()).run()
    (tmp_path / "copy.npz").write_text("a.npz")
    work = make_batch("copy.npz", grid=())
    assert [row.name for row in work.waiting] == ["reading copy"]
    work.run()
    assert len(CALLS) == 1
    assert work.cells[0].values["folder"].startswith("runs/a/default-")


def test_runs_of_other_settings_never_share_a_folder(make_batch, tmp_path):
    (tmp_path / "a.npz").write_text("a")
    for text in ("backend: {knot_s: 0.02}", "backend: {knot_s: 0.05}"):
        (tmp_path / "mine.yaml").write_text(text)
        work = Batch(read_items(["a.npz"]), make_arms(["mine.yaml"], [], []), tmp_path / "out")
        work.plan()
        work.run()
    assert len(list((tmp_path / "out" / "runs" / "a").iterdir())) == 2


def test_a_changed_reference_makes_another_row(make_batch, tmp_path):
    (tmp_path / "a.npz").write_text("a")
    (tmp_path / "list.yaml").write_text("- {recording: a.npz, reference: poses.txt}")
    keys = set()
    for text in ("poses", "other poses"):
        (tmp_path / "poses.txt").write_text(text)
        work = make_batch("list.yaml", grid=())
        work.run()
        keys.add(work.cells[0].key)
    assert len(keys) == len(CALLS) == 2


def test_an_interrupt_keeps_what_is_finished(make_batch):
    work = make_batch("a.npz", "b.npz", grid=())

    def interrupt(batch):
        if batch.in_state("done"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.run(None, interrupt)
    CALLS.clear()
    make_batch("a.npz", "b.npz", grid=()).run()
    assert [name for name, _ in CALLS] == ["b.npz"]


def test_repeats_are_runs_of_their_own(make_batch):
    work = make_batch("a.npz", grid=(), seeds=(1, 2, 3))
    work.run()
    assert len(CALLS) == 3
    assert len({cell.values["folder"] for cell in work.cells}) == 3


def test_rows_have_every_figure_setting_and_digest_whatever_their_names(make_batch, tmp_path):
    work = make_batch("a.npz", "bad.npz")
    work.run()
    with write_rows(work).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["done", "done", "failed", "failed"]
    assert rows[0]["metrics.relative_rms_deg_s.1"] == "0.25"
    assert rows[0]["metrics.relative_rms_deg_s.0.1"] == ""
    assert rows[0]["metrics.later"] == "7"
    assert rows[0]["run.stages.backend.seconds"] == "1.5"
    assert rows[1]["config.backend.knot_s"] == "0.05"
    assert json.loads(rows[0]["run.warnings"]) == ["a", "b"]
    assert len(rows[0]["input_sha256"]) == 64
    assert rows[2]["error"] == "it is bad"
    text = write_page(work).read_text()
    assert "2 of 4 runs done, 2 failed" in text
    assert "it is bad" in text
    assert summary_table(work).row_count == 2
