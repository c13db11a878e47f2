"""Which data: the ECD's where its folder is given, and never a simulated sequence in its place."""

import shutil

import pytest

from cmaxslam_fbp.experiments.sequences import as_sequence, find_in_ecd, open_sequence, sequence_rows
from cmaxslam_fbp.experiments.settings import StudyError, StudySettings
from cmaxslam_fbp.experiments.simulated_sequences import simulation_row
from cmaxslam_fbp.experiments.studies import reproduce
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.rows.row import Row
from cmaxslam_fbp.rows.running import run_rows

NAMES = ("boxes_rotation", "shapes_rotation")


@pytest.fixture(scope="module")
def ecd(tmp_path_factory, simulated_bag):
    """A folder as people have it: one sequence as text, one as a bag."""
    folder = tmp_path_factory.mktemp("ecd")
    open_recording(simulated_bag).convert(folder / "boxes_rotation", duration_s=0.2)
    shutil.copy(simulated_bag, folder / "shapes_rotation.bag")
    return folder


def test_a_sequence_is_found_as_bag_zip_or_folder(tmp_path, ecd):
    assert find_in_ecd("boxes_rotation", ecd) == ecd / "boxes_rotation"
    assert find_in_ecd("shapes_rotation", ecd) == ecd / "shapes_rotation.bag"
    (tmp_path / "poster_rotation.zip").write_bytes(b"")
    (tmp_path / "dynamic_rotation").mkdir()
    assert find_in_ecd("poster_rotation", tmp_path) == tmp_path / "poster_rotation.zip"
    assert find_in_ecd("dynamic_rotation", tmp_path) is None


def test_sequences_of_the_ecd_say_what_they_are(tmp_path, ecd):
    settings = StudySettings(tmp_path, ecd=ecd)
    results = run_rows(sequence_rows(NAMES, settings), tmp_path)
    text, bag = (as_sequence(name, values) for name, values in zip(NAMES, results, strict=True))
    assert text.kind == bag.kind == "ECD"
    assert len(text.identity) == 64
    assert text.identity[:12] in text.provenance
    assert open_sequence(text.places, tmp_path).sensor_size == (240, 180)
    assert bag.scene == "shapes"


def test_a_changed_file_is_another_sequence(tmp_path, ecd):
    copy = shutil.copytree(ecd, tmp_path / "ecd")
    settings = StudySettings(tmp_path, ecd=copy)
    before = run_rows(sequence_rows(NAMES[:1], settings), tmp_path)[0]["identity"]
    with (copy / "boxes_rotation" / "events.txt").open("a") as file:
        file.write("9.5 1 1 0\n")
    assert run_rows(sequence_rows(NAMES[:1], settings), tmp_path)[0]["identity"] != before


def test_a_missing_sequence_of_the_ecd_is_not_simulated(tmp_path, ecd):
    with pytest.raises(StudyError, match=r"lacks 2 of 4 sequences: looked for dynamic_rotation\.bag") as caught:
        reproduce("angular", StudySettings(tmp_path, ecd=ecd))
    assert "poster_rotation/" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["ecd", "data"])
def test_a_folder_that_is_not_there_is_told(tmp_path, option):
    with pytest.raises(StudyError, match="does not exist"):
        StudySettings(tmp_path, **{option: tmp_path / "nothing"})


def test_simulated_sequences_follow_the_real_motion_where_it_is_there(tmp_path, monkeypatch):
    monkeypatch.delenv("CMAXSLAM_FBP_DATA", raising=False)
    lines = [f"{0.005 * k} 0 0 0 0 0 0 1" for k in range(2000)]
    (tmp_path / "shapes_rotation_groundtruth.txt").write_text("\n".join(lines) + "\n")
    real = simulation_row("boxes_rotation", StudySettings(tmp_path, data=tmp_path))
    assert real.settings["duration_s"] == pytest.approx(9.7, abs=0.1)
    assert "trajectory_sha256" in real.settings
    random = simulation_row("boxes_rotation", StudySettings(tmp_path))
    assert random.settings["peak_speed_deg_s"] > 0
    assert (
        simulation_row("boxes_rotation", StudySettings(tmp_path, data=tmp_path, quick=True)).settings != real.settings
    )


def test_a_quick_sequence_says_how_it_was_made(quick_bench):
    (sequence,) = quick_bench.sequences(["dynamic_rotation"])
    assert sequence.kind == "simulated"
    assert "moving foreground" in sequence.provenance
    assert "seed 0" in sequence.provenance
    recording = open_sequence(sequence.places, quick_bench.settings.out)
    assert recording.gyroscope is not None
    assert recording.ground_truth is not None


def test_rows_of_simulations_are_rows(tmp_path):
    assert isinstance(simulation_row("shapes_translation", StudySettings(tmp_path, quick=True)), Row)


def test_a_study_runs_on_the_ecd_and_says_so(tmp_path, simulated_bag):
    folder = tmp_path / "ecd"
    folder.mkdir()
    open_recording(simulated_bag).convert(folder / "boxes_rotation", start_s=1.0, duration_s=1.0)
    shutil.copy(simulated_bag, folder / "shapes_rotation.bag")
    out = tmp_path / "out"
    reproduce("surrogates", StudySettings(out, ecd=folder, quick=True, packets=2))
    text = (out / "surrogates" / "surrogates.md").read_text()
    assert "- boxes_rotation: ECD boxes_rotation (boxes_rotation, SHA-256 " in text
    assert "- shapes_rotation: ECD shapes_rotation (shapes_rotation.bag, SHA-256 " in text
    assert "simulated" not in text
