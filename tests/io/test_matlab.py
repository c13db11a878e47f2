"""MATLAB files, written by SciPy."""

import struct

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.matlab_recording import read_variables


@pytest.fixture
def columns(make_events):
    """2000 events as MATLAB has them: columns of doubles, microseconds."""
    events = make_events(2000)
    return {
        "ts": (events.t_ns // 1000).astype(float)[:, None],
        "x": events.x.astype(float)[:, None],
        "y": events.y.astype(float)[:, None],
        "pol": events.p.astype(float)[:, None],
    }


def read(path, **options):
    return Events.concatenate(open_recording(path, **options).chunks())


def assert_read(events, columns):
    np.testing.assert_array_equal(events.t_ns, columns["ts"][:, 0].astype(np.int64) * 1000)
    for name, column in (("x", events.x), ("y", events.y), ("pol", events.p)):
        np.testing.assert_array_equal(column, columns[name][:, 0])


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["a.mat", "download"])
def test_columns_are_read_whatever_the_file_is_called(tmp_path, columns, compressed, name):
    with (tmp_path / name).open("wb") as file:
        savemat(file, {**columns, "time_unit": "us", "width": 240.0, "height": 180.0}, do_compression=compressed)
    recording = open_recording(tmp_path / name)
    assert recording.sensor_size == (240, 180)
    stream = recording.chunks()
    assert_read(Events.concatenate(stream), columns)
    assert stream.defects.describe() == []


def test_a_structure_of_columns_is_read(tmp_path, columns):
    structure = {"t": columns["ts"], "x": columns["x"], "y": columns["y"], "polarity": 2 * columns["pol"] - 1}
    savemat(tmp_path / "a.mat", {"TD": structure, "note": "of a camera", "time_unit": "us"})
    assert_read(read(tmp_path / "a.mat", sensor_size=(240, 180)), columns)


def test_times_with_a_fraction_are_seconds(tmp_path, columns):
    savemat(tmp_path / "a.mat", {**columns, "ts": columns["ts"] * 1e-6})
    assert_read(read(tmp_path / "a.mat", sensor_size=(240, 180)), columns)


@pytest.mark.parametrize("compressed", [False, True])
def test_variables_of_all_classes_are_as_scipy_reads_them(tmp_path, compressed):
    random = np.random.default_rng(0)
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "bool")
    variables = {f"a_{kind}": (50 * random.random((3, 4, 2))).astype(kind) for kind in kinds}
    variables |= {"none": np.zeros((0, 3)), "one": np.int8(-3), "text": "µs and more", "s": {"x": [1.5, 2], "y": "a"}}
    savemat(tmp_path / "a.mat", variables, do_compression=compressed)
    expected, found = loadmat(tmp_path / "a.mat"), read_variables(tmp_path / "a.mat")
    assert list(found) == list(variables)
    for name in (*(f"a_{kind}" for kind in kinds), "none", "one"):
        np.testing.assert_array_equal(found[name].values(), expected[name])
        assert found[name].values().dtype == (bool if "bool" in name else expected[name].dtype)
    assert found["text"].text() == "µs and more"
    fields = found["s"].fields()
    assert (fields["x"].values().tolist(), fields["y"].text()) == ([[1.5, 2]], "a")


def test_a_big_endian_file_with_numbers_that_are_stored_small_is_read(tmp_path):
    """As MATLAB on other machines wrote them; here word by word, after the description of the format."""

    def element(kind, data):
        if len(data) <= 4:
            return struct.pack(">HH", len(data), kind) + data.ljust(4, b"\0")
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    def column(name, numbers, stored, code):
        head = struct.pack(">II", 6, 0), struct.pack(">ii", len(numbers), 1)  # doubles
        body = element(6, head[0]) + element(5, head[1]) + element(1, name)
        return element(14, body + element(stored, struct.pack(f">{len(numbers)}{code}", *numbers)))

    data = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI"
    data += column(b"ts", (70_000, 70_001, 70_009), 5, "i") + column(b"x", (300, 2, 3), 4, "H")
    (tmp_path / "a.mat").write_bytes(data + column(b"y", (4, 5, 6), 2, "B") + column(b"pol", (1, 0, 1), 2, "B"))
    events = read(tmp_path / "a.mat", sensor_size=(640, 480))
    assert events.t_ns.tolist() == [70_000, 70_001, 70_009]  # so few say nothing of the unit
    assert [column.tolist() for column in (events.x, events.y, events.p)] == [[300, 2, 3], [4, 5, 6], [1, 0, 1]]


def test_a_byte_that_is_wrong_anywhere_is_one_line_at_most(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"S": {"ts": [1.0, 2], "x": [1, 2], "y": [3, 4], "pol": [True, False]}, "time_unit": "us"})
    good, refused = path.read_bytes(), 0
    for place in range(128, len(good)):
        for wrong in (0, 0xFF, good[place] ^ 1):
            path.write_bytes(good[:place] + bytes([wrong]) + good[place + 1 :])
            try:
                read(path, sensor_size=(240, 180))
            except RecordingError:
                refused += 1
    assert refused > len(good) / 2


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"frames": [1, 2]}, r"has no events: none of its variables \(frames\)"),
        ({"a": {"ts": 1, "x": 1, "y": 1, "p": 1}, "b": {"ts": 1, "x": 1, "y": 1, "p": 1}}, "several .* a, b"),
        ({"ts": [1, 2], "x": [1], "y": [1], "pol": [1]}, "the columns differ in length"),
        ({"ts": [1, 2], "x": [1, 2], "y": [1, 2], "pol": ["up", "no"]}, "it must be a list of numbers"),
        ({"ts": [1, 2], "x": np.eye(2), "y": [1, 2], "pol": [1, 2]}, "it must be a list of numbers"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path, variables, complaint):
    savemat(tmp_path / "a.mat", variables)
    with pytest.raises(RecordingError, match=complaint):
        read(tmp_path / "a.mat", sensor_size=(240, 180))


@pytest.mark.parametrize(
    ("size", "complaint"),
    [
        (-100, r"\(ts, x, y\) are the columns .*cut"),
        (20_000, r"\(ts\) are the columns .*cut"),
        (64, "cut"),
    ],
)
def test_a_cut_file_is_one_line(tmp_path, columns, size, complaint):
    savemat(tmp_path / "a.mat", columns)
    (tmp_path / "a.mat").write_bytes((tmp_path / "a.mat").read_bytes()[:size])
    with pytest.raises(RecordingError, match=complaint):
        read(tmp_path / "a.mat", sensor_size=(240, 180))


@pytest.mark.real_data
def test_a_real_recording_of_a_pan_tilt_unit_is_read(real_data):
    recording = open_recording(real_data / "real" / "evbench_seq_0001_e.mat", sensor_size=(240, 180))
    events = Events.concatenate(recording.chunks())
    assert len(events) == 132_784
    assert (events.t_ns[[0, -1]] == [274_260_989_000, 275_330_057_000]).all()
    assert [column[:3].tolist() for column in (events.x, events.y, events.p)] == [
        [79, 136, 27],
        [2, 116, 110],
        [0, 0, 1],
    ]
    with pytest.raises(RecordingError, match="does not tell the sensor's size: give it with --sensor-size"):
        next(open_recording(recording.path).chunks())
