import json
from importlib.util import find_spec

from cmaxslam_fbp.choices import FORMATS
from cmaxslam_fbp.io.npz_recording import NpzRecording


def test_the_table_has_every_format(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    text = run("formats").stdout
    for name in FORMATS.names():
        assert FORMATS[name].description in text
    found = {form["name"]: form for form in json.loads(run("formats", "--json").stdout)}
    assert list(found) == list(FORMATS.names())
    assert found["aedat4"]["written"] == [".aedat4"]
    assert found["text"]["written"] == [".zip", "folder"]
    assert [name for name in ("rosbag", "raw", "aedat2", "npz") if found[name]["imu"]] == ["rosbag", "aedat2", "npz"]
    assert [name for name in ("rosbag", "aedat4", "npz") if found[name]["calibration"]] == ["rosbag", "npz"]
    assert not any(form["missing"] for name, form in found.items() if name != "hdf5")  # which needs an extra
    assert bool(found["hdf5"]["missing"]) == (find_spec("h5py") is None or find_spec("hdf5plugin") is None)


def test_a_missing_library_is_named_with_the_extra(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(NpzRecording, "needs", ("json", "no_such_library"))
    assert "no no_such_library: pip install 'cmaxslam-fbp[formats]'" in run("formats").stdout
