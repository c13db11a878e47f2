"""`run -`: events through a real pipe, poses out of one, and what is left when either side goes away."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from io import BytesIO

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.packed_recording import pack, packed_header
from cmaxslam_fbp.io.trajectory_files import parse_trajectory, read_trajectory

PROGRAM = [sys.executable, "-m", "cmaxslam_fbp"]


@pytest.fixture(scope="module")
def stream(simulated_bag):
    """The header and the events of a stream: every fourth event, which is little on a busy machine, too."""
    recording = open_recording(simulated_bag)
    events = Events.concatenate(recording.chunks())[::4]
    return packed_header(recording.sensor_size, recording.camera), events


@pytest.fixture
def start(tmp_path):
    """Start the program on a pipe."""
    started = []

    def call(*arguments):
        process = subprocess.Popen(
            [*PROGRAM, "run", "-", "--out", tmp_path / "out", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        watchdog = threading.Timer(900, process.kill)  # a hang, not a busy machine that compiles first
        watchdog.daemon = True
        watchdog.start()
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


def figures_of(folder):
    return json.loads((folder / "run.json").read_text())


def test_a_played_recording_gives_its_trajectory_line_by_line(simulated_bag, tmp_path):
    """Twice as fast as it was recorded, through a pipe between two processes."""
    with subprocess.Popen([*PROGRAM, "convert", simulated_bag, "-", "--pace", "2"], stdout=subprocess.PIPE) as player:
        done = subprocess.run(
            [*PROGRAM, "run", "-", "--stream", "--out", tmp_path / "out"],
            stdin=player.stdout,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "out/trajectory.txt").read_text()
    assert "reading a stream: packet pictures and the input's SHA-256 are left out" in done.stderr
    assert "latency" in done.stderr
    run = figures_of(tmp_path / "out")
    assert (run["state"], run["input"], run["input_sha256"]) == ("finished", "standard input", None)
    live = run["live"]
    assert 0 < live["latency"]["median_s"] <= live["latency"]["percentile_95_s"] <= live["latency"]["largest_s"]
    recording = open_recording(simulated_bag)
    assert live["events_read"] == sum(len(events) for events in recording.chunks())
    assert not list((tmp_path / "out").glob("packet_*"))
    assert (tmp_path / "out/report.html").exists()
    assert np.isfinite(np.load(tmp_path / "out/intensity.npy")).any()
    # Faster than its stamps, it waits, and nothing is left out of it; but on a busy machine it may not be faster.
    assert bool(live["events_left_out"]) == ("the work could not keep up with the stream" in done.stderr)
    errors = parse_trajectory(BytesIO(done.stdout.encode()), "stdout").rotation_at(recording.ground_truth.t_ns[50:-50])
    turns = (errors.inv() * recording.ground_truth.rotation_at(recording.ground_truth.t_ns[50:-50])).magnitude()
    assert live["events_left_out"] or np.degrees(turns.max() - turns.min()) < 1.0


def test_poses_come_while_the_sender_waits_and_ctrl_c_keeps_them(start, stream, tmp_path):
    header, events = stream
    process = start("--stream")
    half = events.between(int(events.t_ns[0]), int(events.t_ns[0]) + 1_500_000_000)
    process.stdin.write(header + pack(half))
    process.stdin.flush()
    lines = [process.stdout.readline() for _ in range(50)]  # the sender is silent now, and has not gone
    assert lines[0].startswith(b"# t tx ty tz")
    process.send_signal(signal.SIGINT)
    out, err = process.stdout.read(), process.stderr.read()
    assert process.wait() == 130
    assert b"interrupted: the first 1." in err
    assert b"Traceback" not in err
    assert b"".join(lines) + out == (tmp_path / "out/trajectory.txt").read_bytes()
    assert (tmp_path / "out/intensity.png").exists()
    assert (figures_of(tmp_path / "out")["state"], figures_of(tmp_path / "out")["reason"]) == ("interrupted", "SIGINT")


def test_a_sender_that_dies_within_an_event_leaves_a_finished_run(start, stream, tmp_path):
    header, events = stream
    out, err = start("--stream").communicate((header + pack(events[:-10]))[:-6])
    assert b"warning: the stream ended within an event: its sender was stopped there" in err
    assert figures_of(tmp_path / "out")["state"] == "finished"
    assert out == (tmp_path / "out/trajectory.txt").read_bytes()
    assert read_trajectory(tmp_path / "out/trajectory.txt").end_ns <= events.t_ns[-1]


def test_a_reader_that_goes_away_ends_the_run_and_what_there_is_stays(start, stream, tmp_path):
    header, events = stream
    process = start("--stream")
    first_ns = int(events.t_ns[0])
    process.stdin.write(header + pack(events.between(first_ns, first_ns + 1_500_000_000)))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    with suppress(BrokenPipeError):  # the sender goes on; the run may have ended already
        process.stdin.write(pack(events.between(first_ns + 1_500_000_000, first_ns + 2_000_000_000)))
        process.stdin.flush()
    err = process.stderr.read()
    assert process.wait() == 130, err
    assert b"Traceback" not in err
    assert b"Exception" not in err
    run = figures_of(tmp_path / "out")
    assert (run["state"], run["reason"]) == ("interrupted", "nobody reads the standard output any more")
    assert len(read_trajectory(tmp_path / "out/trajectory.txt")) > 20


@pytest.mark.parametrize(
    ("arguments", "data", "words"),
    [
        ((), b"no events\n", b"error: standard input starts with b'no events\\n'"),
        (("--refine",), None, b"can be read only once, which is not enough for --refine"),
        (("--start", "1"), None, b"can be read only once, which is not enough for --start"),
    ],
)
def test_what_a_stream_cannot_do_is_one_line(start, stream, arguments, data, words, tmp_path):
    process = start(*arguments)
    _, err = process.communicate(stream[0] if data is None else data)
    assert process.returncode == 1
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_can_be_streamed_too_but_not_refined(run, simulated_bag, tmp_path):
    printed = run("run", simulated_bag, "--stream", "--out", tmp_path / "out", "--duration", "1")
    assert printed.stdout == (tmp_path / "out/trajectory.txt").read_text()
    assert "wall time" in printed.stderr
    assert "leave out --refine" in run("run", simulated_bag, "--stream", "--refine", code=1).stderr
    assert "--pace is for a stream" in run("convert", simulated_bag, "a.npz", "--pace", "1", code=1).stderr
