"""A real batch on two workers, of which one is killed in the middle; and what the command says of it afterwards."""

import csv
import os
import runpy
import signal
from pathlib import Path

import pytest

from cmaxslam_fbp.batch.arms import make_arms
from cmaxslam_fbp.batch.batch import Batch
from cmaxslam_fbp.batch.manifest import read_items
from cmaxslam_fbp.config import BackendConfig
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.rows.running import PoolSettings, open_pool

BROWSER = runpy.run_path(str(Path(__file__).parent.parent / "report" / "browser.py"))
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, simulated_bag):
    """Three short recordings, a batch of which was run on two workers, and what happened to these."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("batch")
    for k, name in enumerate(NAMES):
        open_recording(simulated_bag).convert(folder / f"{name}.npz", start_s=0.5 * k, duration_s=0.5)
    (folder / "broken.npz").write_bytes(b"broken")
    work = Batch(read_items([str(folder / "*.npz")]), make_arms([], [], []), folder / "out")
    work.plan()
    killed = []
    with open_pool(PoolSettings(jobs=2)) as pool:

        def kill_one(batch):
            busy = [one for one in batch.running.values() if one.folder]
            if busy and not killed:
                killed.append(next(iter(pool._client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        work.run(pool, kill_one)
    assert killed
    assert [cell.item.name for cell in work.in_state("done")] == sorted(NAMES)
    return folder


def test_the_same_command_does_nothing_and_says_so(run, folder):
    done = run("batch", *(f"{name}.npz" for name in NAMES), "--out", "out", "--jobs", "2", cwd=folder)
    assert "nothing to do: all 3 runs are done and unchanged" in done.stdout
    assert done.stderr == ""


def test_a_recording_that_cannot_be_opened_is_a_failed_row(run, folder):
    done = run("batch", "*.npz", "--out", "out", "--jobs", "1", code=1, cwd=folder)
    assert "0 runs done, 3 known from earlier, 1 failed" in done.stdout
    assert "failed: broken, default: " in done.stderr
    with (folder / "out" / "rows.csv").open() as file:
        rows = {row["recording"]: row for row in csv.DictReader(file)}
    assert rows["broken"]["state"] == "failed"
    for name in NAMES:
        assert float(rows[name]["metrics.absolute_best_fit_rms_deg"]) < 1
        assert rows[name]["run.input_sha256"] == digest(folder / f"{name}.npz")
        assert len(rows[name]["sources_sha256"]) == 64
        assert rows[name]["config.backend.knot_s"] == str(BackendConfig().knot_s)
        assert (folder / "out" / rows[name]["folder"] / "report.html").is_file()


@pytest.mark.skipif(BROWSER["PROGRAM"] is None, reason="no Chromium or Chrome")
def test_the_page_shows_errors_and_maps_and_leads_to_the_reports(run, folder, tmp_path):
    run("batch", "*.npz", "--out", "out", "--jobs", "1", "--quiet", code=1, cwd=folder)
    document, said, shot = BROWSER["open_page"](folder / "out" / "index.html", tmp_path)
    assert said == []
    assert shot.stat().st_size > 20_000
    assert "3 of 4 runs done, 1 failed" in document
    assert document.count('class="run" data-run') == 3
    assert document.count("°</b>") == 3  # the script has put the errors in
    assert document.count("thumbnail.png") == 3


def test_ctrl_c_ends_a_batch_and_keeps_what_is_done(run, folder, monkeypatch):
    from cmaxslam_fbp.batch import batch as batch_module

    def interrupt(settings, out):
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_module, "run", interrupt)
    done = run("batch", "one.npz", "--out", "out", "--jobs", "1", code=130, cwd=folder)
    assert "interrupted: 0 of 1 runs are kept; the same command goes on" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "nothing"], "nothing is neither a preset nor a file"),
        (["--config-grid", "backend.knot_s"], "not of the form"),
        (["--jobs", "2", "--scheduler", "tcp://a:1"], "give one of --jobs"),
        (["--slurm", "missing.yaml"], "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(run, simulated_bag, arguments, words):
    done = run("batch", simulated_bag, "--out", "out", *arguments, code=1)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_seeds_that_run_backwards_are_refused(run, simulated_bag):
    done = run("batch", simulated_bag, "--out", "out", "--repeat", "1,5-3", code=2)
    assert "5-3 is no range of seeds" in done.stderr
