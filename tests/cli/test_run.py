import csv
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io import run_folder as run_folder_module
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.run_folder import LOCK, default_run_folder, run_folder
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.pipeline.output import OUTPUTS

WRITTEN = set(OUTPUTS) - {"distance.npy", "distance.png"}  # those are of --hand-held
BRIGHTNESS = {"intensity.npy", "intensity.png"}  # made at the end: not of a run that broke off


@pytest.fixture(scope="module")
def folder(simulated_bag, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "one"
    subprocess.run([sys.executable, "-m", "cmaxslam_fbp", "run", simulated_bag, "--out", out, "--quiet"], check=True)
    return out


def test_a_run_writes_its_files_and_nothing_half_done(folder):
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "config.yaml", "trajectory.txt", "angular_velocity.csv", "windows.csv", "panorama.png", "panorama.npy",
        "run.json", "metrics.json",
    }  # fmt: skip
    assert not [name for name in names if name.endswith(".part")]


def test_the_trajectory_has_the_recording_s_own_time_at_100_hz_or_more(folder, simulated_bag):
    trajectory = read_trajectory(folder / "trajectory.txt")
    assert trajectory.start_ns == open_recording(simulated_bag).start_ns
    assert np.diff(trajectory.t_ns).max() <= 10_000_000


def test_the_figures_are_those_of_the_files(run, folder, simulated_bag):
    figures = json.loads((folder / "run.json").read_text())
    metrics = json.loads((folder / "metrics.json").read_text())
    again = json.loads(run("evaluate", folder / "trajectory.txt", simulated_bag, "--json").stdout)
    assert again["absolute_best_fit_rms_deg"] == pytest.approx(metrics["absolute_best_fit_rms_deg"], abs=1e-6)
    assert metrics["absolute_best_fit_rms_deg"] < 0.2
    count = sum(len(events) for events in open_recording(simulated_bag).chunks())
    assert figures["events"] + figures["hot_pixels"]["events"] == count
    assert figures["hot_pixels"]["count"] == 5  # as many as the simulated sensor has
    assert figures["real_time_factor"] == pytest.approx(figures["duration_s"] / figures["wall_s"])
    assert len(figures["input_sha256"]) == 64
    assert 50 < figures["peak_memory_mb"] < 1000
    assert (figures["state"], figures["reason"], figures["gaps_ns"]) == ("finished", "", [])


def test_the_velocities_agree_with_the_gyroscope(folder, simulated_bag):
    with (folder / "angular_velocity.csv").open() as file:
        rows = list(csv.DictReader(file))
    seconds, nanoseconds = zip(*(row["t_s"].split(".") for row in rows), strict=True)
    t_ns = np.array(seconds, np.int64) * 10**9 + np.array(nanoseconds, np.int64)
    refined = np.array([[float(row[f"w{axis}_rad_s"]) for axis in "xyz"] for row in rows])
    gyroscope = open_recording(simulated_bag).gyroscope
    inside = (t_ns > gyroscope.t_ns[0]) & (t_ns < gyroscope.t_ns[-1])
    errors = np.degrees(np.linalg.norm(refined[inside] - gyroscope.at(t_ns[inside]), axis=1))
    assert np.sqrt(np.mean(errors**2)) < 6


def test_the_picture_is_dark_on_white(folder):
    picture = cv2.imread(str(folder / "panorama.png"), cv2.IMREAD_GRAYSCALE)
    panorama = np.load(folder / "panorama.npy")
    assert picture.shape == panorama.shape == (512, 1024)
    assert (picture[panorama == 0] == 255).all()
    assert picture.min() == 0


def test_a_folder_in_use_is_refused_and_the_default_one_is_made(run, folder, simulated_bag, tmp_path):
    assert "is not empty" in run("run", simulated_bag, "--out", folder, code=1).stderr
    done = run("run", simulated_bag, "--duration", 0.5)
    assert "results" in done.stdout
    assert "absolute, best fit" in done.stdout
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("shapes-")
    assert (made / "trajectory.txt").exists()


def test_an_unwritable_folder_is_an_error_before_the_work(run, simulated_bag, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in run("run", simulated_bag, "--out", tmp_path / "file" / "sub", code=1).stderr
    assert "is a file" in run("run", simulated_bag, "--out", tmp_path / "file", code=1).stderr


def test_a_missing_calibration_is_an_error_before_the_work(run, tmp_path):
    np.savez(tmp_path / "a.npz", t_ns=[1, 2], x=[1, 1], y=[1, 1], p=[0, 1], width=5, height=5)
    assert "has no calibration: give one with --calib" in run("run", tmp_path / "a.npz", code=1).stderr
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def at_window(monkeypatch):
    """Do something after a window of the run itself; the warm-up comes before."""
    from cmaxslam_fbp.backend.backend import Backend
    from cmaxslam_fbp.pipeline import warm_up

    def arm(number, action):
        inner, inner_warm_up, is_warm = Backend.process, warm_up.compile_once, []

        def process(self, window, velocities, **options):
            report = inner(self, window, velocities, **options)
            if is_warm and len(self.state.reports) == number:
                action()
            return report

        def warm(*arguments):
            seconds = inner_warm_up(*arguments)
            is_warm.append(True)
            return seconds

        monkeypatch.setattr(Backend, "process", process)
        monkeypatch.setattr(warm_up, "compile_once", warm)

    return arm


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_what_has_been_computed(run, simulated_bag, tmp_path, at_window, name):
    at_window(6, lambda: os.kill(os.getpid(), signal.Signals[name]))
    done = run("run", simulated_bag, "--out", "run", "--video", "run/map.mp4", code=130)
    assert "interrupted: the first 0." in done.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} == {*WRITTEN, "map.mp4"}
    figures = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (figures["state"], figures["reason"], figures["windows"]) == ("interrupted", name, 6)
    assert read_trajectory(tmp_path / "run" / "trajectory.txt").end_ns > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    run("report", "run")
    assert "Interrupted" in (tmp_path / "run" / "report.html").read_text()


def test_signals_while_results_are_written_change_nothing(run, simulated_bag, tmp_path, at_window, monkeypatch):
    from cmaxslam_fbp.pipeline import output

    def disturbed(path, data):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return write_file(path, data)

    def interrupt():
        monkeypatch.setattr(output, "write_file", disturbed)
        os.kill(os.getpid(), signal.SIGINT)

    at_window(6, interrupt)
    run("run", simulated_bag, "--out", "run", code=130)
    assert {path.name for path in (tmp_path / "run").iterdir()} == WRITTEN


def test_a_second_signal_ends_a_window_that_takes_too_long(run, simulated_bag, tmp_path, at_window):
    def twice_and_wait():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    at_window(6, twice_and_wait)
    began = time.monotonic()
    run("run", simulated_bag, "--out", "run", code=130)
    assert time.monotonic() - began < 50
    assert {path.name for path in (tmp_path / "run").iterdir()} == WRITTEN


def test_ctrl_c_during_the_warm_up_ends_the_program(run, simulated_bag, tmp_path, monkeypatch):
    from cmaxslam_fbp.pipeline import warm_up

    monkeypatch.setattr(warm_up, "compile_once", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    done = run("run", simulated_bag, "--out", "run", code=130)
    assert done.stderr == "interrupted before the first window was done: there is nothing to keep\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "bad",
    ["1468941033.5 what is this", "1468941030.1 5 5 1", "1468941033.5 1"],
    ids=["words", "back in time", "cut"],
)
def test_an_error_in_the_middle_keeps_everything_before_it(run, simulated_bag, tmp_path, bad):
    open_recording(simulated_bag).convert(tmp_path / "text")
    events = tmp_path / "text" / "events.txt"
    lines = events.read_text().splitlines(keepends=True)
    place = int(0.8 * len(lines))
    expected_s = float(lines[place].split()[0]) - float(lines[0].split()[0]) - 0.01
    events.write_text("".join([*lines[:place], bad]) + "\n" + "".join(lines[place + 1 :]))
    done = run("run", "text", "--out", "run", "--video", "map.mp4", code=1)
    assert "s are in run" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    figures = json.loads((tmp_path / "run" / "run.json").read_text())
    assert figures["state"] == "failed"
    assert figures["reason"].startswith("RecordingError: ")
    assert figures["duration_s"] > expected_s
    assert (tmp_path / "map.mp4").exists()
    trajectory = read_trajectory(tmp_path / "run" / "trajectory.txt")
    assert (trajectory.end_ns - trajectory.start_ns) / 1e9 > expected_s
    run("report", "run")
    assert "Ended by an error" in (tmp_path / "run" / "report.html").read_text()


def test_an_unforeseen_error_keeps_everything_before_it(run, simulated_bag, tmp_path, at_window):
    at_window(6, lambda: 1 / 0)
    run("run", simulated_bag, "--out", "run", code=1)
    figures = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (figures["state"], figures["reason"]) == ("failed", "ZeroDivisionError: division by zero")


def test_an_overwritten_folder_has_nothing_of_the_earlier_run(run, simulated_bag, tmp_path):
    run("run", simulated_bag, "--out", "run", "--duration", 0.5)
    (tmp_path / "run" / ".windows.csv.77.part").write_text("")  # of a run that was killed
    source = open_recording(simulated_bag)
    camera = source.require_camera()
    bare = Recording.from_events(list(source.chunks(0, 0.5)), camera=camera)
    bare.convert(tmp_path / "bare.npz")
    run("run", "bare.npz", "--out", "run", "--overwrite")
    assert {path.name for path in (tmp_path / "run").iterdir()} == WRITTEN - {"metrics.json"}
    assert "bare" in json.loads((tmp_path / "run" / "run.json").read_text())["input"]


def test_a_folder_with_anything_else_in_it_is_left_alone(run, simulated_bag, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "wedding.jpg").write_text("dear")
    done = run("run", simulated_bag, "--out", "photos", "--overwrite", code=1)
    assert "photos is not empty: wedding.jpg in it; choose another folder" in done.stderr
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["wedding.jpg"]


def test_two_runs_do_not_share_a_folder(run, simulated_bag, tmp_path):
    with run_folder(tmp_path / "run", files=OUTPUTS):
        done = run("run", simulated_bag, "--out", "run", "--overwrite", code=1)
        assert f"another run (process {os.getpid()} on " in done.stderr
    assert not (tmp_path / "run").exists()


def test_runs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_folder_module, "datetime", SimpleNamespace(now=lambda: datetime(2026, 1, 2, 3, 4, 5)))
    names = ["boxes-20260102-030405", "boxes-20260102-030405-2", "boxes-20260102-030405-3"]
    for name in names:
        folder = default_run_folder(Path("elsewhere/boxes.bag"))
        assert folder == Path("runs") / name
        folder.mkdir(parents=True)


def test_the_lock_of_a_run_that_is_gone_is_taken_over(run, simulated_bag, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).write_text("process 1 on this machine\n")
    run("run", simulated_bag, "--out", "run", "--duration", 0.5)
    assert {path.name for path in (tmp_path / "run").iterdir()} == WRITTEN


def test_a_video_of_the_growing_map_is_written(run, simulated_bag, tmp_path):
    run("run", simulated_bag, "--duration", 0.6, "--video", tmp_path / "map.mp4", "--quiet")
    video = cv2.VideoCapture(str(tmp_path / "map.mp4"))
    frames = []
    while True:
        read, frame = video.read()
        if not read:
            break
        frames.append(frame)
    assert len(frames) == 5  # one per window
    touched = [(frame < 250).sum() for frame in frames]
    assert touched[-1] > 1.2 * touched[0]


def test_a_video_that_is_there_stays_unless_it_may_be_replaced(run, simulated_bag, tmp_path):
    (tmp_path / "map.mp4").write_bytes(b"kept")
    done = run("run", simulated_bag, "--duration", 0.4, "--out", "run", "--video", "map.mp4", code=1)
    assert "map.mp4 exists already" in done.stderr
    assert (tmp_path / "map.mp4").read_bytes() == b"kept"
    assert not (tmp_path / "run").exists()
    run("run", simulated_bag, "--duration", 0.4, "--out", "run", "--video", "map.mp4", "--overwrite", "--quiet")
    assert (tmp_path / "map.mp4").stat().st_size > 1000


def test_torch_gives_the_same_trajectory(run, simulated_bag, tmp_path):
    pytest.importorskip("torch")
    for backend in ("numba", "torch"):
        run("run", simulated_bag, "--duration", 0.5, "--backend", backend, "--out", tmp_path / backend, "--quiet")
    one, other = (read_trajectory(tmp_path / name / "trajectory.txt") for name in ("numba", "torch"))
    angles = np.degrees((one.rotations.inv() * other.rotations).magnitude())
    assert np.sqrt(np.mean(angles**2)) < 0.05


def test_a_run_without_brightness_has_no_such_files(run, simulated_bag, tmp_path):
    run("run", simulated_bag, "--duration", 0.3, "-o", tmp_path / "out", "--no-intensity", "--quiet")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == WRITTEN - BRIGHTNESS
    assert 'id="brightness-map"' not in (tmp_path / "out" / "report.html").read_text()
    video = ["--video", tmp_path / "a.mp4", "--video-shows", "brightness", "--no-intensity"]
    assert "needs the brightness" in run("run", simulated_bag, "-o", tmp_path / "no", *video, code=1).stderr


def test_brightness_is_written_and_filmed(run, simulated_bag, tmp_path):
    place, video = tmp_path / "out", tmp_path / "grows.mp4"
    settings = ["--set", "intensity.scale=2", "--set", "backend.panorama_size=[512, 256]"]
    filmed = ["--video", video, "--video-shows", "brightness"]
    run("run", simulated_bag, "--duration", 0.8, "-o", place, *settings, *filmed)
    image = np.load(place / "intensity.npy")
    picture = cv2.imread(str(place / "intensity.png"), cv2.IMREAD_UNCHANGED)
    assert image.shape == (512, 1024)
    np.testing.assert_array_equal(picture[..., 3] > 0, np.isfinite(image))
    assert 'id="brightness-map"' in (place / "report.html").read_text()
    assert json.loads((place / "run.json").read_text())["stages"]["intensity"]["seconds"] > 0
    frames = cv2.VideoCapture(str(video))
    assert 4 <= frames.get(cv2.CAP_PROP_FRAME_COUNT) <= 8
