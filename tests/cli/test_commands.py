import json
import os
import subprocess
import sys

import numpy as np
import pytest
import typer

from cmaxslam_fbp import __version__
from cmaxslam_fbp.cli.app import app
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.trajectory_files import write_trajectory
from cmaxslam_fbp.trajectory import RotationTrajectory


def make_recording(events):
    t_ns = 1_468_941_032_229_417_000 + np.arange(0, 60_000_001, 5_000_000)
    angles = 0.5 * 0.5 * (t_ns - t_ns[0]) * 1e-9  # half of 0.5 rad/s about y
    zeros = np.zeros(len(t_ns))
    quaternions = np.column_stack([zeros, np.sin(angles), zeros, np.cos(angles)])
    return Recording.from_events(events, camera=davis240c(), ground_truth=RotationTrajectory(t_ns, quaternions))


@pytest.fixture
def bag(tmp_path, make_events):
    make_recording(make_events(5000)).convert(tmp_path / "a.bag")
    return tmp_path / "a.bag"


def test_help_and_version(run):
    assert "simulate" in run("--help").stdout
    assert run("--version").stdout == f"{__version__}\n"
    for command in ("info", "convert", "simulate", "evaluate", "config"):
        assert "Usage" in run(command, "--help").stdout


def test_usage_errors_exit_with_2(run):
    assert "No such command" in run("nothing", code=2).stderr
    run("info", code=2)
    run("info", "a.bag", "--sensor-size", "big", code=2)


def test_known_errors_are_one_line_and_exit_with_1(run):
    done = run("info", "missing.bag", code=1)
    assert done.stderr.startswith("error: missing.bag does not exist")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [("--debug", "info", "missing.bag"), ("info", "missing.bag", "--debug")])
def test_debug_shows_the_traceback(run, arguments):
    assert "Traceback" in run(*arguments, code=1).stderr


def test_info_as_json(run, bag):
    figures = json.loads(run("info", bag, "--json").stdout)
    assert (figures["events"], figures["width"], figures["height"]) == (5000, 240, 180)
    assert figures["duration_s"] == pytest.approx(0.05, abs=1e-3)
    assert figures["mean_rate_ev_s"] == pytest.approx(5000 / figures["duration_s"])
    assert 1.0e5 < figures["peak_rate_ev_s"] < 1.3e5
    assert figures["calibration"]["fx"] == 199.092
    assert figures["ground_truth_poses"] == 13
    assert ["/dvs/events", "dvs_msgs/msg/EventArray", 6] in figures["topics"]


def test_info_for_people(run, bag):
    text = run("info", bag).stdout
    for words in ("240 x 180 pixels", "5,000", "fx 199.092", "13 poses", "/dvs/events"):
        assert words in text


def test_info_of_a_range_counts_only_that(run, bag):
    whole = json.loads(run("info", bag, "--json").stdout)
    part = json.loads(run("info", bag, "--json", "--start", 0.01, "--duration", 0.02).stdout)
    assert part["events"] == pytest.approx(2000, rel=0.1)
    assert part["start_ns"] >= whole["start_ns"] + 10_000_000


def test_the_peak_rate_is_that_of_the_busiest_ten_milliseconds(run, tmp_path, make_events):
    """2,000 events within 10 ms among 1,000 over a second, however the recording is cut into pieces."""
    from cmaxslam_fbp.events import Events

    quiet = make_events(1000, start_ns=0, duration_ns=1_000_000_000)
    t_ns = np.sort(np.concatenate([[0], quiet.t_ns, 500_000_000 + 2_500 * np.arange(2000)]))
    column = np.ones(len(t_ns), np.uint16)
    events = Events(t_ns, column, column, column.astype(np.uint8))
    expected = np.bincount(t_ns // 10_000_000).max() / 0.01
    make_recording(events).convert(tmp_path / "b.bag")
    assert json.loads(run("info", tmp_path / "b.bag", "--json").stdout)["peak_rate_ev_s"] == expected


def test_warnings_about_mended_events_go_to_stderr(run, tmp_path):
    np.savez(tmp_path / "a.npz", t_ns=[1, 3, 2], x=[1, 2, 9], y=[1, 1, 1], p=[0, 1, 1], width=5, height=5)
    done = run("info", tmp_path / "a.npz", "--json")
    defects = json.loads(done.stdout)["defects"]
    assert (defects["reordered"], defects["outside_sensor"]) == (1, 1)
    assert "warning: 1 events came out of order" in done.stderr
    assert "warning: 1 events lay outside the sensor" in done.stderr


def test_convert_keeps_everything_and_does_not_overwrite(run, bag, tmp_path):
    assert run("convert", bag, tmp_path / "b.npz").stdout.endswith("b.npz: 5,000 events\n")
    assert "exists already" in run("convert", bag, tmp_path / "b.npz", code=1).stderr
    run("convert", bag, tmp_path / "b.npz", "--overwrite", "--quiet")
    run("convert", tmp_path / "b.npz", tmp_path / "text")
    run("convert", tmp_path / "text", tmp_path / "c.bag", "--compression", "lz4")
    first, last = open_recording(bag), open_recording(tmp_path / "c.bag")
    for a, b in zip(first.chunks(), last.chunks(), strict=True):
        np.testing.assert_array_equal(a.t_ns, b.t_ns)
        np.testing.assert_array_equal(a.x, b.x)
    assert first.camera == last.camera
    np.testing.assert_allclose(first.ground_truth.quaternions_xyzw, last.ground_truth.quaternions_xyzw, atol=1e-11)


def test_a_given_calibration_travels_with_the_conversion(run, bag, tmp_path):
    (tmp_path / "mine.txt").write_text("100 101 102 103 0 0 0 0 0\n")
    run("convert", bag, tmp_path / "b.npz", "--calib", tmp_path / "mine.txt")
    assert open_recording(tmp_path / "b.npz").require_camera().fy == 101


def test_evaluate_against_a_recording_and_a_file(run, bag, tmp_path):
    truth = open_recording(bag).ground_truth
    write_trajectory(tmp_path / "est.txt", truth)
    write_trajectory(tmp_path / "gt.txt", truth)
    for reference in (bag, tmp_path / "gt.txt"):
        figures = json.loads(run("evaluate", tmp_path / "est.txt", reference, "--json").stdout)
        assert figures["absolute_best_fit_rms_deg"] < 1e-6
        assert figures["poses"] == 13
    assert "absolute, best fit" in run("evaluate", tmp_path / "est.txt", bag).stdout


def test_evaluate_without_ground_truth_says_so(run, tmp_path):
    np.savez(tmp_path / "a.npz", t_ns=[1, 2, 3], x=[1, 1, 1], y=[1, 1, 1], p=[0, 1, 1], width=5, height=5)
    (tmp_path / "est.txt").write_text("0 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n")
    assert "has no reference poses" in run("evaluate", tmp_path / "est.txt", tmp_path / "a.npz", code=1).stderr


def test_config_show_prints_what_applies(run):
    text = run("config", "show", "default", "--set", "recording.events_topic=/mine").stdout
    assert "events_topic: /mine" in text
    assert "did you mean" in run("config", "show", "--set", "recording.event_topic=1", code=1).stderr
    assert "default" in run("config", "list").stdout.split()


@pytest.fixture
def recording(tmp_path, make_events):
    make_recording(make_events(200)).convert(tmp_path / "a.npz")
    return tmp_path / "a.npz"


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def one_line(done):
    """What went to stderr: one line that fits a terminal."""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert len(done.stderr) <= 310
    return done.stderr


@pytest.mark.parametrize("target", [".", "..", "photos", "photos/..", "a.npz/b.npz", "x" * 300, "x" * 300 + ".npz"])
@pytest.mark.parametrize("command", [("convert", "../a.npz"), ("simulate",)])
def test_overwriting_loses_nothing_but_recordings(run, recording, tmp_path, command, target):
    (tmp_path / "here" / "photos").mkdir(parents=True)
    (tmp_path / "here" / "photos" / "of 1998.jpg").write_bytes(b"dear")
    (tmp_path / "here" / "photos" / "events.txt").write_bytes(b"0 1 1 1\n")
    (tmp_path / "here" / "a.npz").write_bytes(b"mine")
    before = tree(tmp_path)
    options = [] if command[0] == "convert" else ["--duration", 0.1, "--quiet"]
    line = one_line(run(*command, target, *options, "--overwrite", code=1, cwd=tmp_path / "here"))
    assert tree(tmp_path) == before
    if target == "photos":
        assert "of 1998.jpg" in line
        assert "events.txt" not in line


def test_a_folder_that_is_a_link_or_holds_folders_is_not_replaced(run, recording, tmp_path):
    (tmp_path / "real" / "events.txt").mkdir(parents=True)
    (tmp_path / "real" / "events.txt" / "diary").write_text("dear")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    before = tree(tmp_path)
    for target in ("real", "link"):
        one_line(run("convert", recording, target, "--overwrite", code=1))
    assert tree(tmp_path) == before


def test_an_earlier_recording_is_replaced_whole(run, recording, tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    for name in ("events.txt", "imu.txt"):
        (folder / name).write_text("of an earlier recording")
    run("convert", recording, folder, "--overwrite", "--quiet")
    assert sorted(path.name for path in folder.iterdir()) == ["calib.txt", "events.txt", "groundtruth.txt"]
    assert sum(len(events) for events in open_recording(folder).chunks()) == 200


@pytest.mark.parametrize("name", ["b.npz", "b.bag", "b.zip", "b"])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(recording, tmp_path, name):
    before = tree(tmp_path)
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); from cmaxslam_fbp.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", limited, "convert", recording, tmp_path / name], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert name in one_line(done)
    assert tree(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="needs a place where nobody may write")
@pytest.mark.parametrize("command", ["convert", "simulate"])
def test_a_place_that_cannot_be_written_to_is_one_line(run, recording, command):
    """Not even the superuser makes files there."""
    source = [recording] if command == "convert" else []
    options = [] if command == "convert" else ["--duration", 0.1]
    done = run(command, *source, "/proc/out.npz", *options, code=1)
    assert "/proc/out.npz" in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--start", "--duration"])
@pytest.mark.parametrize("seconds", ["inf", "nan", "1e300", "-1e300", "soon", "[/x]"])
def test_times_that_are_none_are_usage_errors(run, recording, option, seconds):
    for command in (("info", recording), ("convert", recording, "b.npz"), ("evaluate", "a.txt", recording)):
        assert f"Invalid value for '{option}'" in run(*command, f"{option}={seconds}", code=2).stderr


@pytest.mark.parametrize("name", [b"[/x].npz", b"[bold]a.npz", b"\xff\xfe.npz"])
def test_any_name_of_a_file_is_printed_as_it_is(recording, tmp_path, name):
    (tmp_path / "[").mkdir()
    recording.rename(tmp_path / os.fsdecode(name))

    def call(*arguments):
        return subprocess.run([sys.executable, "-m", "cmaxslam_fbp", *arguments], cwd=tmp_path, capture_output=True)

    assert name in call("info", name).stdout
    assert call("convert", name, b"b" + name).stdout == (b"b" + name + b": 200 events\n" if b"/" not in name else b"")
    assert call("info", b"no" + name).stderr.count(b"\n") == 1


@pytest.mark.parametrize("size", ["0x0", "٣x٣", "999999999x999999999", "9" * 5000 + "x1"])
def test_a_sensor_of_no_plausible_size_is_refused(run, recording, size):
    done = run("info", recording, "--sensor-size", size, code=1 if size.startswith("999999999x") else 2)
    assert "sensor" in done.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("over\nthere" + 400 * "!"), ["RuntimeError: over there", "report", "--debug"]),
        (MemoryError(), ["out of memory", "--duration"]),
        (OSError(5, "Input/output error", "/a/disk"), ["/a/disk: Input/output error"]),
        (AssertionError(), ["AssertionError", "report", "--debug"]),
    ],
)
def test_an_unforeseen_error_is_one_line_that_asks_for_a_report(run, recording, monkeypatch, error, words):
    def fail(*_):
        raise error

    monkeypatch.setattr("cmaxslam_fbp.io.summary.summarize", fail)
    line = one_line(run("info", recording, code=1))
    assert all(word in line for word in words)
    assert "Traceback" in run("--debug", "info", recording, code=1).stderr


def test_a_reader_that_has_gone_is_no_error(recording):
    done = subprocess.run(
        f"({sys.executable} -m cmaxslam_fbp info {recording} --json; echo $? >&2) | true",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == "1\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], None),
        (["--refine"], "contrast"),
        (["--refine", "--quiet"], "contrast"),
        (["--refine", "photometric"], "photometric"),
        (["--refine=photometric"], "photometric"),
        (["--refine", "contrast"], "contrast"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_refine_is_a_flag_that_may_have_a_value(given, expected, is_first):
    """Also right before the recording, which is no kind of refinement."""
    command = typer.main.get_command(app).commands["run"]
    words = [*given, "boxes.bag"] if is_first else ["boxes.bag", *given]
    context = command.make_context("run", words)
    assert context.params["refine"] == expected
    assert str(context.params["path"]) == "boxes.bag"
