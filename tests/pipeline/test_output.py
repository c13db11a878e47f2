"""The files of a run folder are those that `OUTPUTS` names, and so say the documents."""

import json
import re
from pathlib import Path

import pytest

from cmaxslam_fbp.config import Config
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.output import OUTPUTS, Run, write_outputs
from cmaxslam_fbp.pipeline.painting import paint

WRITTEN = set(OUTPUTS) - {"distance.npy", "distance.png"}  # those are of --hand-held
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recording(simulated_bag):
    """A moment in memory."""
    source = open_recording(simulated_bag)
    return Recording.from_events(
        list(source.chunks(0.5, 0.5)), camera=davis240c(), ground_truth=source.ground_truth, name="moment"
    )


def test_a_run_writes_all_outputs_and_nothing_else(recording, tmp_path):
    result = paint(Slam().run(recording), recording.require_camera(), Config())
    write_outputs(Run(tmp_path, result, Config(), recording, ["run"]), OUTPUTS)
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN
    figures = json.loads((tmp_path / "run.json").read_text())
    assert (figures["input"], figures["input_sha256"]) == recording.origin()
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/png") == 4  # the map, the brightness, and a packet before and after


def test_a_file_of_an_earlier_run_is_not_taken_for_one_of_this_run(recording, tmp_path):
    (tmp_path / "metrics.json").write_text('{"absolute_best_fit_rms_deg": 0.001}')
    bare = Recording.from_events(list(recording.chunks(0.0, 0.3)), camera=davis240c())
    write_outputs(Run(tmp_path, Slam().run(bare), Config(), bare, ["run"]), OUTPUTS)
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN - {"metrics.json", "intensity.npy", "intensity.png"}


def test_the_table_of_the_run_folder_names_all_outputs():
    section = (ROOT / "docs/formats.md").read_text().partition("## The run folder")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([\w.]+)`", " ".join(cells))) == sorted(OUTPUTS)


def test_the_readme_names_no_file_that_a_run_does_not_write():
    text = (ROOT / "README.md").read_text().partition("The run folder has")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+\.\w+)`", text))
    assert len(named) >= 6
    assert named <= set(OUTPUTS)
