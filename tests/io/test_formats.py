"""A file format is one class, named in the registry: it recognises, describes, reads and writes its own files."""

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cmaxslam_fbp.choices import FORMATS
from cmaxslam_fbp.cli.app import app
from cmaxslam_fbp.errors import ConfigError, OutputError, RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.opening import readable_formats
from cmaxslam_fbp.io.writing import writable_endings, write_recording

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


@contextmanager
def write_toy(source, path, compression):
    rows = []
    yield lambda events: rows.extend(np.column_stack([events.t_ns, events.x, events.y, events.p]).tolist())
    path.write_text(json.dumps({"toy": rows, "size": source.sensor_size}))


class ToyRecording(Recording):
    """Events as JSON."""

    description = "a toy (.toy)"
    endings = (".toy",)
    sinks = {".toy": write_toy}  # noqa: RUF012

    def _pieces(self, skip_before_ns):
        yield Piece(Events.from_arrays(*zip(*json.loads(self.path.read_text())["toy"], strict=True)), str(self.path))

    def _own_sensor_size(self):
        return SensorSize(*json.loads(self.path.read_text())["size"])


@pytest.fixture
def toy_format():
    FORMATS.add("toy", ToyRecording)
    yield
    FORMATS.remove("toy")


@pytest.fixture
def recording(make_events):
    return Recording.from_events(make_events(300), camera=davis240c())


@pytest.mark.usefixtures("toy_format")
def test_a_format_from_outside_is_read_written_and_named(tmp_path, recording, assert_same_events):
    assert recording.convert(tmp_path / "a.toy") == 300
    toy = open_recording(tmp_path / "a.toy")
    assert isinstance(toy, ToyRecording)
    assert toy.sensor_size == (240, 180)
    assert toy.convert(tmp_path / "b.npz") == 300
    assert_same_events(*(Events.concatenate(open_recording(tmp_path / name).chunks()) for name in ("a.toy", "b.npz")))
    assert readable_formats().endswith(", or a toy (.toy)")
    with pytest.raises(OutputError, match=r"use .*\.toy, \.zip or none"):
        recording.convert(tmp_path / "a.raw")


@pytest.mark.usefixtures("toy_format")
def test_the_command_line_converts_a_format_from_outside(tmp_path, recording):
    recording.convert(tmp_path / "a.toy")
    done = CliRunner().invoke(app, ["convert", str(tmp_path / "a.toy"), str(tmp_path / "b.toy"), "--quiet"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a.toy").read_text() == (tmp_path / "b.toy").read_text()


@pytest.mark.usefixtures("toy_format")
def test_the_help_names_all_formats(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    words = CliRunner().invoke(app, ["convert", "--help"]).output
    assert readable_formats() in words
    assert writable_endings() in words
    assert ".toy" in writable_endings()


def test_the_page_about_formats_names_all_of_them():
    text = " ".join(DOCS.read_text().split())
    for name in FORMATS.names():
        assert FORMATS[name].description in text
        for ending in filter(None, FORMATS[name].sinks):
            assert f"`{ending}`" in text


def test_a_format_that_is_only_read_needs_no_writer(tmp_path, recording):
    class ReadOnly(ToyRecording):
        sinks = {}  # noqa: RUF012

    FORMATS.add("toy", ReadOnly)
    try:
        with pytest.raises(OutputError, match=f"use {re.escape(writable_endings())}"):
            recording.convert(tmp_path / "a.toy")
    finally:
        FORMATS.remove("toy")


@pytest.mark.parametrize("name", ["a.bag", "a.npz", "a.zip"])
def test_a_file_is_known_by_its_content_under_another_name(tmp_path, recording, name, assert_same_events):
    write_recording(recording, recording.chunks(), tmp_path / name)
    shutil.move(tmp_path / name, tmp_path / "download")
    assert_same_events(
        *(Events.concatenate(one.chunks()) for one in (recording, open_recording(tmp_path / "download")))
    )


def test_an_empty_file_and_another_one_are_told_apart(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(RecordingError, match="empty is empty; 'cmaxslam-fbp formats' lists what is read"):
        open_recording(tmp_path / "empty")
    with pytest.raises(RecordingError, match=r"notes\.txt is not a recording; 'cmaxslam-fbp formats' lists"):
        open_recording(tmp_path / "notes.txt")


def test_options_are_those_of_the_configuration(tmp_path, recording):
    recording.convert(tmp_path / "a.npz")
    assert open_recording(tmp_path / "a.npz", sensor_size=[9, 8]).sensor_size == SensorSize(9, 8)
    with pytest.raises(ConfigError, match=r"unknown key recording\.sensor_siz; did you mean recording\.sensor_size\?"):
        open_recording(tmp_path / "a.npz", sensor_siz=(9, 8))


@pytest.mark.parametrize("name", ["a.npz", "a.zip", "a"])
def test_a_calibration_file_tells_the_size_that_the_recording_does_not(tmp_path, name, make_events):
    events = make_events(10, width=5, height=5)
    np.savez(tmp_path / "a.npz", t_ns=events.t_ns, x=events.x, y=events.y, p=events.p)
    if name != "a.npz":
        open_recording(tmp_path / "a.npz", sensor_size=(240, 180)).convert(tmp_path / name)
    (tmp_path / "camera.yaml").write_text("{intrinsics: [100, 100, 3, 2], resolution: [7, 6]}")
    calibrated = open_recording(tmp_path / name, calibration=tmp_path / "camera.yaml")
    assert calibrated.sensor_size == SensorSize(7, 6)
    assert calibrated.require_camera().fx == 100
    assert open_recording(
        tmp_path / name, calibration=tmp_path / "camera.yaml", sensor_size=(9, 8)
    ).sensor_size == SensorSize(9, 8)
