import runpy
from pathlib import Path

make_run = runpy.run_path(str(Path(__file__).parents[1] / "report" / "made_run.py"))["make_run"]


def test_the_page_of_a_run_is_made_again(run, tmp_path):
    folder = make_run(tmp_path / "run")
    assert run("report", folder).stdout == f"{folder / 'report.html'}\n"
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_folder_that_is_no_run_is_one_line(run, tmp_path):
    done = run("report", tmp_path, code=1)
    assert (
        done.stderr
        == f"error: {tmp_path} is not the folder of a run: run.json and trajectory.txt and panorama.npy missing\n"
    )
    assert "is not a folder" in run("report", tmp_path / "nowhere", code=1).stderr
