"""Kill runs at random moments and look at what is left of them.

Starts `cmaxslam-fbp run` on a simulated recording again and again, sends SIGINT, SIGTERM or SIGKILL at a random moment
(and sometimes a second signal a little later), and checks the folder: every file whole and readable, a state in
run.json that is true, a report that can be made, no traceback. Prints a table; the exit code is 1 where a check fails.

    python tools/kill_runs.py --kills 100 --seed 1
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cmaxslam_fbp.io.run_folder import LOCK
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.pipeline.output import OUTPUTS
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

PROGRAM = (sys.executable, "-m", "cmaxslam_fbp")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_TRUE_STATES = {
    signal.SIGINT: ("interrupted", "finished"),
    signal.SIGTERM: ("interrupted", "finished"),
    signal.SIGKILL: ("running", "finished"),
}


@dataclass(frozen=True)
class Killed:
    """A run that was killed: by which signal, when, what it left, and what is wrong with that."""

    signal: signal.Signals
    after_s: float
    exit_code: int
    state: str
    poses: int
    faults: list[str]


def simulate(folder: Path, duration_s: float) -> Path:
    """Write a recording to be run; return its path."""
    path = folder / "recording.npz"
    simulation = Simulation(SimulationSettings(scene="shapes", duration_s=duration_s, peak_speed_deg_s=200.0, seed=3))
    write_recording(simulation, simulation.chunks(), path)
    return path


def time_one(recording: Path, out: Path) -> tuple[float, float]:
    """Return how long a run takes to its first window, and from there to its end."""
    began = time.perf_counter()
    process = subprocess.Popen([*PROGRAM, "run", str(recording), "--out", str(out), "--quiet"])
    while not (out / "run.json").exists() and process.poll() is None:
        time.sleep(0.01)
    first = time.perf_counter()
    if process.wait() != 0:
        raise SystemExit("the run to be killed does not work by itself")
    return first - began, time.perf_counter() - first


def kill_one(
    recording: Path,
    out: Path,
    number: signal.Signals,
    after_s: float,
    *,
    twice: bool = False,
    once_there: Path | None = None,
) -> Killed:
    """Start a run, send it a signal after a time (from when a file is there), wait, and check what it has left."""
    process = subprocess.Popen(
        [*PROGRAM, "run", str(recording), "--out", str(out), "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    )
    while once_there is not None and not once_there.exists() and process.poll() is None:
        time.sleep(0.01)
    for wait_s in (after_s, 0.05) if twice else (after_s,):
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)  # no longer than it lives
        process.send_signal(number)
    words = process.communicate(timeout=120)[1]
    faults = ["traceback"] if "Traceback" in words else []
    faults += find_faults(out, number)
    try:
        state = str(json.loads((out / "run.json").read_text())["state"])
        poses = len(read_trajectory(out / "trajectory.txt"))
    except FileNotFoundError:
        state, poses = "nothing", 0
    return Killed(number, after_s, process.returncode, state, poses, faults)


def find_faults(folder: Path, number: signal.Signals) -> list[str]:
    """Return what is wrong with the folder of a run that got a signal, one line each."""
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    faults = []
    if number is not signal.SIGKILL:
        faults += [f"{name} is left" for name in there - set(OUTPUTS)]
    elif there - set(OUTPUTS) - {LOCK} - {name for name in there if name.endswith(".part")}:
        faults.append(f"unknown files: {sorted(there - set(OUTPUTS))}")
    if "run.json" not in there:
        return faults if number is signal.SIGKILL or not there else [*faults, "no run.json"]
    try:
        state = json.loads((folder / "run.json").read_text())["state"]
        if state not in _TRUE_STATES[number]:
            faults.append(f"the state is {state}")
        read_trajectory(folder / "trajectory.txt")
        np.load(folder / "panorama.npy", allow_pickle=False)
        for name in ("angular_velocity.csv", "windows.csv"):
            text = (folder / name).read_text()
            header, *rows = csv.reader(text.splitlines())
            faults += [f"{name}: a line of {len(row)} columns" for row in rows if len(row) != len(header)]
            if not text.endswith("\n"):
                faults.append(f"{name} ends within a line")
    except (OSError, ValueError, KeyError) as error:
        faults.append(f"{type(error).__name__}: {error}")
    report = subprocess.run([*PROGRAM, "report", str(folder)], capture_output=True, text=True)
    return faults if report.returncode == 0 else [*faults, f"report: {report.stderr.strip()[-200:]}"]


def main() -> None:
    """Kill runs, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--duration", type=float, default=20.0, help="seconds of the simulated recording")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    failed = in_midst = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = simulate(folder, options.duration)
        start_s, run_s = time_one(recording, folder / "whole")
        print(f"a run takes {start_s:.1f} s to its first window and {run_s:.1f} s from there")
        print("\nsignal   after_s  exit  state        poses  faults")
        for k in range(options.kills):
            number, twice, out = chance.choice(SIGNALS), chance.random() < 0.3, folder / f"run{k}"
            # Most of the time in the midst of the run, whose first file tells where that is; sometimes before.
            early = chance.random() < 0.15
            after_s = chance.uniform(0, start_s if early else 0.7 * run_s)  # the first run is the slowest one
            once_there = None if early else out / "run.json"
            killed = kill_one(recording, out, number, after_s, twice=twice, once_there=once_there)
            in_midst += killed.state in ("interrupted", "running")
            failed += bool(killed.faults)
            print(
                f"{killed.signal.name + (' x2' if twice else ''):10s} {killed.after_s:5.2f}  {killed.exit_code:4d}  "
                f"{killed.state:12s} {killed.poses:5d}  {'; '.join(killed.faults) or '-'}",
                flush=True,
            )
    print(f"\n{options.kills} runs killed, {in_midst} of them in the midst of the run; {failed} with faults")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
