"""`calibrate` on a short recording: the file that it writes, and what it refuses."""

import json

import cv2
import pytest

from cmaxslam_fbp.io.calibration import read_calibration


@pytest.fixture(scope="module")
def short(simulated_bag):
    return simulated_bag


def test_the_calibration_is_read_by_opencv_and_by_us(run, short, tmp_path):
    printed = run("calibrate", short, "--field-of-view", 66, "--model", "plumb_bob", "--out", "camera.yaml", "--json")
    told = json.loads(printed.stdout)
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
