"""The recordings of a batch: paths, patterns, and lists that say more about each."""

import pytest

from cmaxslam_fbp.batch.manifest import read_items
from cmaxslam_fbp.errors import ConfigError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a/one.bag", "a/two.bag", "b/one.bag"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_patterns_are_resolved_and_equal_names_told_apart(folder):
    items = read_items(["a/*.bag", "b/one.bag", "a/one.bag"])
    assert [item.name for item in items] == ["a-one", "two", "b-one", "a-one-2"]
    assert items[0].path == folder / "a" / "one.bag"


def test_a_list_gives_each_recording_calibration_range_and_reference(folder):
    (folder / "a" / "list.yaml").write_text(
        "- one.bag\n"
        "- recording: ../b/*.bag\n"
        "  name: other\n"
        "  calibration: cam.yaml\n"
        "  reference: poses.txt\n"
        "  start_s: 2\n"
        "  duration_s: 3\n"
        "- {name: made, simulate: {scene: boxes, duration_s: 1}}\n"
    )
    one, other, *made = read_items(["a/list.yaml"], duration_s=10, seeds=[4, 5])
    assert (one.name, one.start_s, one.duration_s, one.options) == ("one", None, 10, {})
    assert other.path == folder / "b" / "one.bag"
    assert (other.name, other.start_s, other.duration_s) == ("other", 2, 3)
    assert other.options == {
        "calibration": str(folder / "a" / "cam.yaml"),
        "reference": str(folder / "a" / "poses.txt"),
    }
    assert [(item.name, item.simulate["scene"], item.simulate["seed"]) for item in made] == [
        ("made-4", "boxes", 4),
        ("made-5", "boxes", 5),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recording: a.bag", "no list of recordings"),
        ("- {recordings: a.bag}", "entry 1: recordings: Extra inputs"),
        ("- a.bag\n- {recording: a.bag, duration_s: -1}", "entry 2: duration_s"),
        ("- {name: a}", "give either recording or simulate"),
        ("- {simulate: {}}", "needs a name"),
        ("- 3", "entry 1"),
        ("- {recording: 'nothing*.bag'}", "no file matches"),
        ("[", "not valid YAML"),
    ],
)
def test_a_faulty_list_is_one_line_that_names_the_entry(folder, text, words):
    (folder / "list.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_items(["list.yaml"])
