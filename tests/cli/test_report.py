import json
import runpy
from pathlib import Path

from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

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


def test_a_run_leaves_a_page_with_reference_and_pictures(run, tmp_path):
    simulation = Simulation(SimulationSettings(scene="shapes", duration_s=0.4))
    write_recording(simulation, simulation.chunks(), tmp_path / "shapes.npz")
    run("run", tmp_path / "shapes.npz", "-o", tmp_path / "out", "--quiet")
    values = json.loads((tmp_path / "out" / "report_data.json").read_text())
    assert max(values["errors"]["absolute_deg"]) < 3
    assert values["angular_velocity"]["source"] == "gyroscope"
    assert values["packet"]["contrast_after"] > values["packet"]["contrast_before"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "One packet of events" in page
    assert "Velocity error" in page
