"""What the engine of `cmaxslam-fbp batch` costs beside its work, and what a large batch would take on a cluster.

python tools/benchmark_batch.py boxes.bag
python tools/benchmark_batch.py boxes.bag --recordings 1000 --length 60 --nodes 64 --cores 32 --storage 500 2000 10000

The same runs are done three times: in a plain loop in one process, by `batch --jobs 1`, and by `batch --jobs N` on
workers of Dask. What the engine costs is what a program takes beside its runs, and what Dask's threads take in a worker
during a run, which is measured with workers that sleep. All figures of the engine are CPU time, of a program and its
workers, which other programs on the machine hardly change.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from cmaxslam_fbp.batch.arms import make_arms
from cmaxslam_fbp.batch.batch import Batch
from cmaxslam_fbp.batch.manifest import read_items
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.rows.row import Row, Values, Work
from cmaxslam_fbp.rows.running import THREADS_PER_TASK, PoolSettings, open_pool, outcomes

READINGS = 2  # of each recording over the network: for its digest, and by its run, perhaps on another node
BATCHES = (24, 1000)  # runs, over which the start of the workers is spread
_LOOP = "--plain-loop"
_SLEEP_S = 20.0
_SUBREAPER = 36  # of Linux: what programs leave behind becomes this one's child, whose CPU time it is told


@dataclass(frozen=True)
class Engine:
    """CPU time of workers on this machine, without any work.

    Attributes
    ----------
    start_s : to start, to import what the first row needs, and to end
    row_s : for each row
    idle : for each second that they are there
    """

    start_s: float
    row_s: float
    idle: float


@dataclass(frozen=True)
class Program:
    """CPU time of a program: in all, and of it in the runs."""

    whole_s: float
    runs_s: float

    @property
    def beside_s(self) -> float:
        """Outside of the runs."""
        return self.whole_s - self.runs_s


def nothing(settings: Mapping[str, Any], out: Path) -> Values:
    """Stand for work that takes no time."""
    return {}


def sleep(settings: Mapping[str, Any], out: Path) -> Values:
    """Stand for work that takes time, and no CPU."""
    began = time.process_time()
    time.sleep(_SLEEP_S)
    return {"cpu_s": time.process_time() - began}


def cpu_s(*whose: int) -> float:
    """Return the CPU time of this process, of those that it has waited for, or of both."""
    usages = [resource.getrusage(who) for who in whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure_rows(rows: Sequence[Row], jobs: int, out: Path) -> tuple[float, float]:
    """Return the CPU time of workers that start, compute rows and end; and that of this process and in the rows."""
    began = cpu_s()
    with open_pool(PoolSettings(jobs=jobs)) as pool:
        here, inside = cpu_s(resource.RUSAGE_SELF), 0.0
        for row, outcome in outcomes(deque(rows), out, pool):
            if isinstance(outcome, Exception):
                raise SystemExit(f"{row.name}: {outcome}")
            inside += outcome.get("cpu_s", 0.0)
        here = cpu_s(resource.RUSAGE_SELF) - here
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # which waits for the process that workers were forked from: its time counts
    return cpu_s() - began, here + inside


def measure_engine(rows: int, jobs: int, out: Path) -> Engine:
    """Measure workers without work; what this process imports for them comes before, and is theirs no more."""
    measure_rows([], jobs, out)
    start, _ = measure_rows(_rows("first", nothing, jobs), jobs, out)
    whole, _ = measure_rows(_rows("row", nothing, rows + jobs), jobs, out)
    _, asleep = measure_rows(_rows("sleeper", sleep, jobs), jobs, out)
    return Engine(start, max(whole - start, 0.0) / rows, asleep / _SLEEP_S)


def _rows(name: str, work: Work, count: int) -> list[Row]:
    return [Row(f"{name} {k}", work, {"name": name, "k": k}) for k in range(count)]


def plan(path: Path, runs: int, out: Path) -> Batch:
    """Return a batch of so many runs of a recording, whose digest is taken."""
    work = Batch(read_items([str(path)]), make_arms([], [], []), out, seeds=range(runs))
    work.plan()
    readings = work.waiting.copy()
    work.waiting.clear()
    for row, outcome in outcomes(readings, out):
        if isinstance(outcome, Exception):
            raise SystemExit(f"error: {row.name}: {outcome}")
    work.plan()
    return work


def plain_loop(path: Path, runs: int, out: Path) -> None:
    """Do the runs of a batch without its engine; print the CPU time of each."""
    rows = plan(path, runs, out).waiting
    print(json.dumps([row.work({**row.settings, **row.places}, out)["cpu_s"] for row in rows]))


def measure_loop(path: Path, runs: int, out: Path) -> Program:
    """Measure the plain loop."""
    before = cpu_s(resource.RUSAGE_CHILDREN)
    done = _call([sys.executable, __file__, str(path), "--runs", str(runs), _LOOP, str(out)])
    return Program(cpu_s(resource.RUSAGE_CHILDREN) - before, sum(json.loads(done)))


def measure_batch(path: Path, runs: int, jobs: int, out: Path) -> tuple[Program, list[dict[str, str]]]:
    """Measure the command, and return its rows."""
    before = cpu_s(resource.RUSAGE_CHILDREN)
    words = ["batch", str(path), "--repeat", f"0-{runs - 1}", "--jobs", str(jobs), "--out", str(out)]
    _call([sys.executable, "-m", "cmaxslam_fbp", *words])
    whole = cpu_s(resource.RUSAGE_CHILDREN) - before
    with (out / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    return Program(whole, sum(float(row["cpu_s"]) for row in rows)), rows


def _call(words: Sequence[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ)
    with suppress(ChildProcessError):  # until all processes that it has left behind have ended
        while True:
            os.waitpid(-1, 0)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(words)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def print_overhead(programs: Mapping[str, Program], engine: Engine, jobs: int, run_s: float) -> None:
    """Print what the engine takes beside its runs, on this machine and spread over larger batches.

    A run is taken to last as long as its CPU time, though it has two threads: the most that its worker can idle.
    """
    loop = programs["plain loop"]
    for name, one in programs.items():
        words = f"{name}: {one.whole_s:.1f} s of CPU, {one.runs_s:.1f} in the runs, {one.beside_s:.1f} beside them"
        more = one.beside_s - loop.beside_s
        share = f": {more:.1f} s more than the loop, {100 * more / loop.runs_s:.1f} % of its runs"
        print(words if one is loop else words + share)
    print(
        f"engine: {engine.start_s:.1f} s to start and end {jobs} workers, {1e3 * engine.row_s:.1f} ms per row, "
        f"{engine.idle:.3f} of a core while they are there"
    )
    lasting_s = engine.row_s + engine.idle * run_s / jobs
    print(f"  per run of {run_s:.1f} s of CPU: {100 * lasting_s / run_s:.1f} %, and the start:")
    for runs in BATCHES:
        print(f"  a batch of {runs} such runs: {100 * (lasting_s + engine.start_s / runs) / run_s:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a recording like those of the batch, some 10 s long")
    parser.add_argument("--runs", type=int, default=3, help="of it, in each of the three ways (3)")
    parser.add_argument("--jobs", type=int, default=2, help="workers on this machine (2)")
    parser.add_argument("--rows", type=int, default=300, help="rows of no work (300)")
    parser.add_argument("--recordings", type=int, default=1000, help="of the large batch (1000)")
    parser.add_argument("--length", type=float, default=60.0, help="of each, in seconds (60)")
    parser.add_argument("--nodes", type=int, default=64, help="of the cluster (64)")
    parser.add_argument("--cores", type=int, default=32, help="of a node (32)")
    parser.add_argument("--speed", type=float, help="of a run, of real time; by default by its CPU time")
    parser.add_argument("--storage", type=float, nargs="+", default=[500, 2000, 10_000], help="MB/s, together")
    parser.add_argument(_LOOP, dest="loop", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        plain_loop(options.recording, options.runs, options.loop)
        return
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        measure_loop(options.recording, 1, out / "first")  # compiles
        programs = {"plain loop": measure_loop(options.recording, options.runs, out / "loop")}
        for jobs in (1, options.jobs):
            programs[f"batch --jobs {jobs}"], rows = measure_batch(
                options.recording, options.runs, jobs, out / f"jobs_{jobs}"
            )
        engine = measure_engine(options.rows, options.jobs, out)
    run_s = programs["batch --jobs 1"].runs_s / options.runs
    duration_s = float(rows[0]["run.duration_s"])
    speed = options.speed or duration_s / run_s  # on one core; a run has two threads
    megabytes = options.recording.stat().st_size / 1e6
    began = time.process_time()
    digest(options.recording)
    hashing = time.process_time() - began
    print(f"{options.runs} runs of {duration_s:.1f} s, {megabytes:.0f} MB; its digest {hashing:.2f} s of CPU")
    print_overhead(programs, engine, options.jobs, run_s)
    print_large_batch(options, engine, run_s, duration_s, speed, megabytes / duration_s)


def print_large_batch(
    options: argparse.Namespace, engine: Engine, run_s: float, duration_s: float, speed: float, megabytes_per_s: float
) -> None:
    """Print what a large batch on a cluster would take, and what limits it."""
    slots = options.nodes * options.cores // THREADS_PER_TASK
    waves = -(-options.recordings // slots)
    computing = waves * options.length / speed
    scheduling = options.recordings * 2 * engine.row_s
    terabytes = READINGS * options.recordings * megabytes_per_s * options.length / 1e6
    whole_h = options.recordings * run_s * options.length / duration_s / 3600
    print(
        f"\n{options.recordings} recordings of {options.length:g} s, {options.nodes} nodes with {options.cores} cores: "
        f"{whole_h:.1f} hours of CPU"
    )
    print(
        f"computing   {computing:8.0f} s  ({slots} runs at a time, {waves} after each other, {speed:.2f} of real time)"
    )
    print(f"scheduling  {scheduling:8.0f} s  (two rows per recording, one after the other in one process)")
    for rate in options.storage:
        reading = terabytes * 1e6 / rate
        limit = max((reading, "storage"), (computing, "computing"), (scheduling, "scheduling"))[1]
        useful = round(rate / (READINGS * megabytes_per_s * speed))
        print(
            f"reading     {reading:8.0f} s  ({terabytes:.1f} TB at {rate:g} MB/s; limited by {limit}; "
            f"the storage feeds {useful} runs at a time)"
        )


if __name__ == "__main__":
    main()
