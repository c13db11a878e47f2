"""`run --rerun`: the file is read back by Rerun's own reader."""

import csv
import json
import sys
from decimal import Decimal

import numpy as np
import pytest

from cmaxslam_fbp.errors import MissingExtraError, OutputError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.viewer import rerun_log

CAMERA = Camera(240, 180, 199.1, 198.8, 132.2, 110.7, (), "plumb_bob")


@pytest.fixture(scope="module")
def out(simulated_bag, tmp_path_factory):
    """The folder of a short run with its .rrd file."""
    pytest.importorskip("rerun")
    import subprocess

    folder = tmp_path_factory.mktemp("rerun") / "out"
    command = ["run", simulated_bag, "--out", folder, "--duration", "1.5", "--rerun", folder / "a.rrd", "--quiet"]
    command += ["--set", "events.hot_pixel_factor=null"]  # then every event is one that is shown
    subprocess.run([sys.executable, "-m", "cmaxslam_fbp", *map(str, command)], check=True)
    return folder


@pytest.fixture(scope="module")
def logged(out):
    """All rows by entity: times in seconds, and the columns."""
    from rerun.chunk import RrdReader

    found = {}
    for chunk in RrdReader(str(out / "a.rrd")).stream():
        batch = chunk.to_record_batch()
        times = batch.column(rerun_log.TIMELINE).to_numpy(zero_copy_only=False) if chunk.timeline_names else []
        names = [name for name in batch.schema.names if ":" in name]
        entry = found.setdefault(chunk.entity_path, {"timelines": set(), "t_s": []})
        entry["timelines"] |= set(chunk.timeline_names)
        entry["t_s"] += (np.asarray(times).astype("timedelta64[ns]").astype(np.int64) * 1e-9).tolist()
        for name in names:
            entry.setdefault(name, []).extend(batch.column(name).to_pylist())
    return found


def test_every_part_of_a_run_is_logged_on_the_recording_s_timeline(logged, out):
    entities = {name for name in logged if not name.startswith(("/__properties", "/world/path/"))}
    assert entities == {
        "/world", "/world/camera", "/world/camera/image", "/events", "/packet/before", "/packet/after", "/map",
        "/tracking", "/curves/speed_deg_s", "/curves/contrast", "/curves/match", "/curves/events",
        *(f"/curves/angular_velocity_deg_s/{axis}" for axis in "xyz"),
    }  # fmt: skip
    assert "/world/path/00000" in logged
    for name in entities - {"/world", "/world/camera/image"}:
        assert logged[name]["timelines"] == {rerun_log.TIMELINE}
        assert 0 <= min(logged[name]["t_s"]) <= max(logged[name]["t_s"]) < 1.6
    windows = json.loads((out / "run.json").read_text())["windows"]
    assert len(logged["/packet/before"]["t_s"]) == len(logged["/tracking"]["t_s"]) == windows
    assert 3 <= len(logged["/map"]["t_s"]) <= windows


def test_the_camera_is_where_the_trajectory_says(logged, out):
    trajectory = read_trajectory(out / "trajectory.txt")
    camera = logged["/world/camera"]
    order = np.argsort(camera["t_s"])
    np.testing.assert_allclose(
        np.array(camera["t_s"])[order], (trajectory.t_ns - trajectory.start_ns) * 1e-9, atol=2e-9
    )
    quaternions = np.array(camera["Transform3D:quaternion"], float).reshape(-1, 4)[order]
    np.testing.assert_allclose(quaternions, trajectory.quaternions_xyzw, atol=1e-6)


def test_the_events_are_those_of_the_recording_before_the_end_of_each_window(logged, out, simulated_bag):
    events = Events.concatenate(open_recording(simulated_bag).chunks(0.0, 1.5))
    with (out / "windows.csv").open() as file:
        ends_ns = [int(Decimal(row["end_s"]) * 10**9) for row in csv.DictReader(file)]
    entry, seen = logged["/events"], 0
    order = np.argsort(entry["t_s"], kind="stable")
    for end_ns, place in zip(ends_ns, order, strict=True):
        raw = events.between(end_ns - 30_000_000, end_ns)
        assert entry["t_s"][place] == pytest.approx(1e-9 * (raw.t_ns[-1] - events.t_ns[0]), abs=2e-9)
        raw = raw[:: -(-len(raw) // 20_000) or 1]
        np.testing.assert_array_equal(entry["Points2D:positions"][place], np.column_stack([raw.x, raw.y]))
        is_red = (np.array(entry["Points2D:colors"][place], np.uint32) >> 24) > 128
        np.testing.assert_array_equal(is_red, raw.p == 1)
        seen += len(raw)
    assert seen > 10_000


@pytest.fixture(scope="module")
def pictures(logged):
    """The pictures of an entity in the order of time."""
    import cv2

    def decode(entity):
        entry = logged[entity]
        blobs = [entry["EncodedImage:blob"][place][0] for place in np.argsort(entry["t_s"], kind="stable")]
        return [cv2.imdecode(np.frombuffer(bytes(blob), np.uint8), cv2.IMREAD_UNCHANGED) for blob in blobs]

    return decode


def test_packets_are_sharper_with_their_motion_undone(pictures):
    before, after = pictures("/packet/before"), pictures("/packet/after")
    assert {image.shape for image in (*before, *after, *pictures("/world/camera/image"))} == {(180, 240)}
    inked = [(np.count_nonzero(a < 250), np.count_nonzero(b < 250)) for a, b in zip(after, before, strict=True)]
    assert sum(a for a, _ in inked) < 0.9 * sum(b for _, b in inked)  # the same events on fewer pixels
    assert len({image.tobytes() for image in after}) > 5


def test_the_map_grows_and_ends_as_that_of_the_run(pictures, out):
    import cv2

    maps = pictures("/map")
    inked = [np.count_nonzero(image < 255) for image in maps]
    assert inked == sorted(inked)
    assert inked[-1] > 1.2 * inked[0] > 0
    np.testing.assert_array_equal(maps[-1], cv2.imread(str(out / "panorama.png"), cv2.IMREAD_UNCHANGED))


def test_a_file_that_is_there_or_no_rrd_is_refused(run, out, simulated_bag, tmp_path):
    words = run("run", simulated_bag, "--rerun", out / "a.rrd", code=1).stderr
    assert "a.rrd exists already" in words
    with pytest.raises(OutputError, match=r"a\.txt must end in \.rrd"):
        rerun_log.RerunLog(tmp_path / "a.txt", CAMERA)
    with pytest.raises(OutputError, match="cannot be written"):
        rerun_log.RerunLog(tmp_path / "missing" / "a.rrd", CAMERA)


def test_without_the_library_the_extra_is_named(run, monkeypatch, simulated_bag, tmp_path):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingExtraError, match=r"Rerun is not installed: pip install 'cmaxslam-fbp\[rerun\]'"):
        rerun_log.RerunLog(tmp_path / "a.rrd", CAMERA)
    assert "cmaxslam-fbp[rerun]" in run("run", simulated_bag, "--rerun", "b.rrd", "--out", "o", code=1).stderr
    assert not (tmp_path / "o").exists()


def test_the_viewer_gets_the_file_of_the_run(run, out, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(rerun_log, "open_viewer", opened.append)
    run("view", out, "--rerun")
    run("view", out / "a.rrd", "--rerun")
    assert opened == [out / "a.rrd", out / "a.rrd"]
    assert "has no .rrd file" in run("view", tmp_path, "--rerun", code=1).stderr
