"""`calibrate` on a short recording: the file that it writes, and what it refuses."""

import json
import os
import signal
import time
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.calibration import read_calibration
from cmaxslam_fbp.pipeline import calibrating
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples


@pytest.fixture(scope="module")
def short(simulated_bag):
    return simulated_bag


def test_the_calibration_is_read_by_opencv_and_by_us(run, short, tmp_path):
    options = "--field-of-view", 66, "--model", "plumb_bob", "--out", "camera.yaml", "--report", "camera.html", "--json"
    printed = run("calibrate", short, *options)
    told = json.loads(printed.stdout)
    page = (tmp_path / "camera.html").read_text()
    across, down = told["field_of_view_deg"]
    assert f"{across:.1f}° x {down:.1f}°" in page
    for row in told["parameters"]:
        assert f'<th scope="row">{row["name"]}</th><td>{row["value"]:.6g}</td>' in page
    assert page.count('class="parts"') == page.count("data:image/png") == 2  # before and after
    assert "{{" not in page
    storage = cv2.FileStorage(str(tmp_path / "camera.yaml"), cv2.FILE_STORAGE_READ)
    matrix = storage.getNode("camera_matrix").mat()
    assert matrix.tolist() == told["camera_matrix"]
    assert storage.getNode("distortion_coefficients").mat().size == 5
    deviations = storage.getNode("standard_deviations")
    known = {row["name"]: row for row in told["parameters"] if row["observed"]}
    assert deviations.getNode("k1").real() == pytest.approx(known["k1"]["deviation"])
    camera = read_calibration(tmp_path / "camera.yaml", (240, 180))
    assert camera.matrix.tolist() == told["camera_matrix"]
    assert camera.fx == pytest.approx(199.1, rel=0.05)  # two seconds tell no more
    assert run("calibrate", short, "--out", "camera.yaml", code=1).stderr.startswith(
        "error: camera.yaml exists already"
    )


def test_a_parameter_that_the_lens_does_not_have_is_an_error(run, short):
    told = run("calibrate", short, "--model", "pinhole", "--fix", "k1", "--field-of-view", 66, code=1).stderr
    assert "the pinhole lens has no parameter k1" in told


def test_a_recording_without_calibration_names_the_command(run, tmp_path, make_events):
    events = make_events(100)
    lines = [f"{t / 1e9:.9f} {x} {y} {p}" for t, x, y, p in zip(events.t_ns, events.x, events.y, events.p, strict=True)]
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "events.txt").write_text("\n".join(lines) + "\n")
    told = run("run", folder, code=1).stderr
    assert "cmaxslam-fbp calibrate" in told
    told = run("calibrate", folder, "--sensor-size", "240x180", code=1).stderr
    assert "too few to tell a lens from" in told


def test_run_adjusts_a_lens_and_says_what_was_gained(run, short, tmp_path):
    """Two seconds with a focal length that is three percent too long: the run is made with a better one."""
    (tmp_path / "wrong.txt").write_text("205.1 204.8 132.2 110.7 -0.36 0.15 0 0\n")
    told = run("run", short, "--calib", "wrong.txt", "--refine-lens", "--out", "adjusted").stdout
    assert "contrast" in told
    camera = read_calibration(tmp_path / "adjusted" / "camera.yaml", (240, 180))
    assert camera.fx != 205.1
    assert (camera.cx, camera.cy) == pytest.approx((132.2, 110.7), abs=3)


def test_run_keeps_a_lens_that_cannot_be_improved(run, short, tmp_path, monkeypatch):
    def without_gain(recording, *arguments, **options):
        lens = SimpleNamespace(camera=None, before=SimpleNamespace(contrast=2.0), after=SimpleNamespace(contrast=2.0))
        return SimpleNamespace(lens=lens)

    monkeypatch.setattr(calibrating, "refine_calibration", without_gain)
    told = run("run", short, "--refine-lens", "--duration", 0.5, "--out", "kept", "--quiet").stderr
    assert "the contrast did not gain: the given calibration stays" in told
    assert read_calibration(tmp_path / "kept" / "camera.yaml", (240, 180)).fx == pytest.approx(199.092, abs=1e-3)


def test_run_finds_the_lens_first(run, short, tmp_path, monkeypatch):
    """The calibration of the recording is not looked at: one of the lenses of the scan leads to it."""
    monkeypatch.setattr(calibrating, "FIELDS_DEG", (56.0,))
    told = run("run", short, "--calibrate", "--out", "found").stdout
    assert "field of view" in told
    camera = read_calibration(tmp_path / "found" / "camera.yaml", (240, 180))
    assert camera.fx != 199.092366542
    assert camera.fx == pytest.approx(199.1, rel=0.05)
    assert (camera.cx, camera.cy) == pytest.approx((132.2, 110.7), abs=5)
    metrics = json.loads((tmp_path / "found" / "metrics.json").read_text())
    assert metrics["absolute_best_fit_rms_deg"] < 0.5


def test_a_gyroscope_that_lies_askew_is_found_and_used_by_the_evaluation(run, short, tmp_path):
    """A bag whose gyroscope has other axes, a late clock and a bias: its place is found, and rates agree with it."""
    recording = open_recording(short)
    true = recording.imu
    askew, bias, late_ns = Rotation.from_euler("xyz", [75, -20, 130], degrees=True), [0.03, -0.02, 0.05], 6_200_000
    turned = askew.inv().apply(true.angular_velocity_rad_s) + bias
    imu = ImuSamples(true.t_ns + late_ns, turned, true.linear_acceleration_m_s2)
    parts = {"camera": recording.camera, "ground_truth": recording.ground_truth, "imu": imu}
    Recording.from_events(list(recording.chunks()), **parts).convert(tmp_path / "askew.bag")
    (tmp_path / "true.txt").write_text("199.092 198.829 132.192 110.713 -0.368436 0.150947 -0.000296 -0.000759 0\n")
    kept = "--focal", 199.0, "--fix", "focal", "--fix", "aspect"
    told = json.loads(run("calibrate", "askew.bag", *kept, "--out", "camera.yaml", "--json").stdout)
    assert told["camera_matrix"][0][0] == told["camera_matrix"][1][1] == 199.0
    assert [row["name"] for row in told["parameters"]] == ["cx", "cy", "k1", "k2", "p1", "p2"]
    found = told["imu_alignment"]
    assert found["observed"] == "yes"
    assert np.degrees((Rotation.from_quat(found["quaternion_xyzw"]) * askew.inv()).magnitude()) < 1.0
    assert found["time_offset_s"] == pytest.approx(late_ns * 1e-9, abs=5e-4)
    assert found["bias_rad_s"] == pytest.approx(bias, abs=0.03)
    assert found["rate_ratio"] == pytest.approx(1, abs=0.03)
    errors = []
    for calibration in ("camera.yaml", "true.txt"):
        run("run", "askew.bag", "--calib", calibration, "--out", "run", "--overwrite", "--quiet")
        metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
        assert metrics["angular_velocity_reference"] == "gyroscope"
        errors.append(metrics["angular_velocity_rms_deg_s"])
    assert errors[0] < 0.1 * errors[1]  # without its place the rates are those about other axes


def test_an_interrupted_scan_ends_with_the_lenses_that_are_being_tried(run, short, tmp_path, monkeypatch):
    tried = []

    def interrupted(events, passages, size, field_deg):
        tried.append(field_deg)
        if len(tried) == 1:
            time.sleep(0.3)  # until all are on their way
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)

    monkeypatch.setattr(calibrating, "try_field_of_view", interrupted)
    told = run("calibrate", short, "--out", "camera.yaml", code=130).stderr
    assert told.endswith("interrupted: camera.yaml was not written\n")
    assert 0 < len(tried) < len(calibrating.FIELDS_DEG) - 2
    assert not list(tmp_path.iterdir())


def test_an_interrupted_adjustment_leaves_no_file(run, short, tmp_path, monkeypatch):
    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    monkeypatch.setattr(calibrating._Calibration, "_follow", interrupted)
    monkeypatch.setattr(calibrating, "FIELDS_DEG", (56.0,))
    (tmp_path / "camera.yaml").write_text("an earlier one")
    run("calibrate", short, "--out", "camera.yaml", "--overwrite", code=130)
    assert (tmp_path / "camera.yaml").read_text() == "an earlier one"
    assert len(list(tmp_path.iterdir())) == 1
