import csv
import json
import subprocess
import sys

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory


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
    assert figures["events"] == sum(len(events) for events in open_recording(simulated_bag).chunks())
    assert figures["real_time_factor"] == pytest.approx(figures["duration_s"] / figures["wall_s"])
    assert len(figures["input_sha256"]) == 64
    assert 50 < figures["peak_memory_mb"] < 1000
    assert not figures["interrupted"]


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


def test_ctrl_c_keeps_what_has_been_computed(simulated_bag, tmp_path):
    """The signal comes when the first windows are done: a run that a person stops."""
    program = (
        "import sys, os, signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "from cmaxslam_fbp.pipeline import slam\n"
        "inner = slam.Backend.process\n"
        "def process(self, window, velocities):\n"
        "    report = inner(self, window, velocities)\n"
        "    state = self.state\n"
        "    if len(state.reports) == 6 and state.map.image.shape == (512, 1024) and os.environ.get('ARMED'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return report\n"
        "slam.Backend.process = process\n"
        "from cmaxslam_fbp.cli import run as command\n"
        "import cmaxslam_fbp.pipeline.warm_up as w\n"
        "inner_warm_up = w.warm_up\n"
        "def warm_up(*a, **k):\n"
        "    s = inner_warm_up(*a, **k)\n"
        "    os.environ['ARMED'] = '1'\n"
        "    return s\n"
        "w.warm_up = warm_up\n"
        f"sys.argv = ['cmaxslam-fbp', 'run', {str(simulated_bag)!r}, '--out', {str(tmp_path / 'run')!r}]\n"
        "from cmaxslam_fbp.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "interrupted: what there was by then is in" in done.stderr
    figures = json.loads((tmp_path / "run" / "run.json").read_text())
    assert figures["interrupted"]
    assert 0.3 < figures["duration_s"] < 1.5
    assert read_trajectory(tmp_path / "run" / "trajectory.txt").end_ns > 0


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


def test_torch_gives_the_same_trajectory(run, simulated_bag, tmp_path):
    pytest.importorskip("torch")
    for backend in ("numba", "torch"):
        run("run", simulated_bag, "--duration", 0.5, "--backend", backend, "--out", tmp_path / backend, "--quiet")
    one, other = (read_trajectory(tmp_path / name / "trajectory.txt") for name in ("numba", "torch"))
    angles = np.degrees((one.rotations.inv() * other.rotations).magnitude())
    assert np.sqrt(np.mean(angles**2)) < 0.05
