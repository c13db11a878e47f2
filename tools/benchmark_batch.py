"""What the engine of `cmaxslam-fbp batch` costs beside its work, and what a large batch would take on a cluster.

python tools/benchmark_batch.py boxes.bag
python tools/benchmark_batch.py boxes.bag --recordings 1000 --length 60 --nodes 64 --cores 32 --storage 500 2000 10000

Figures of the engine are CPU time (this process and its workers), which other programs on the machine do not change.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cmaxslam_fbp.batch.arms import make_arms
from cmaxslam_fbp.batch.batch import Batch
from cmaxslam_fbp.batch.manifest import read_items
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.rows.pools import THREADS_PER_TASK, PoolSettings, open_pool
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.rows.running import outcomes

READINGS = 2  # of each recording over the network: for its digest, and by its run, perhaps on another node


def nothing(settings: Mapping[str, Any], out: Path) -> Values:
    """Stand for work that takes no time."""
    return {}


def cpu_s() -> float:
    """Return the CPU time of this process and of the workers that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def engine_cost(rows: int, jobs: int, out: Path) -> tuple[float, float]:
    """Return the CPU time of workers that start, compute rows of no work, and end; and the wall time of the rows."""
    began = cpu_s()
    with open_pool(PoolSettings(jobs=jobs)) as pool:
        wall = time.perf_counter()
        for row, outcome in outcomes(deque(Row(f"row {k}", nothing, {"k": k}) for k in range(rows)), out, pool):
            if isinstance(outcome, Exception):
                raise SystemExit(f"{row.name}: {outcome}")
        wall = time.perf_counter() - wall
    return cpu_s() - began, wall


def measure_run(path: Path, out: Path) -> Values:
    """Return the values of a run in this process, of the second: the first compiles."""
    values: Values | None = None
    for seed in (0, 1):
        work = Batch(read_items([str(path)]), make_arms([], [], []), out, seeds=[seed])
        work.plan()
        work.run()
        values = work.cells[0].values
        if values is None:
            raise SystemExit(f"error: {work.cells[0].error}")
    assert values is not None
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a recording like those of the batch")
    parser.add_argument("--jobs", type=int, default=2, help="workers on this machine (2)")
    parser.add_argument("--rows", type=int, default=300, help="rows of no work (300)")
    parser.add_argument("--recordings", type=int, default=1000, help="of the large batch (1000)")
    parser.add_argument("--length", type=float, default=60.0, help="of each, in seconds (60)")
    parser.add_argument("--nodes", type=int, default=64, help="of the cluster (64)")
    parser.add_argument("--cores", type=int, default=32, help="of a node (32)")
    parser.add_argument("--speed", type=float, help="of a run, of real time, instead of the one measured here")
    parser.add_argument("--storage", type=float, nargs="+", default=[500, 2000, 10_000], help="MB/s, together")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        run = measure_run(options.recording, out)
        fixed, _ = engine_cost(0, options.jobs, out)
        whole, wall = engine_cost(options.rows, options.jobs, out)
    per_row = max(whole - fixed, 0.0) / options.rows
    figures = run["run"]
    duration_s, speed = figures["duration_s"], options.speed or figures["real_time_factor"]
    megabytes = options.recording.stat().st_size / 1e6
    began = time.process_time()
    digest(options.recording)
    hashing = time.process_time() - began
    print(f"a run of {duration_s:.1f} s: {run['cpu_s']:.1f} s of CPU, {figures['real_time_factor']:.2f} of real time")
    print(f"{megabytes:.0f} MB, {megabytes / duration_s:.1f} MB per second; its digest {hashing:.2f} s of CPU")
    print(f"engine: {fixed:.1f} s of CPU to start and end {options.jobs} workers, {1e3 * per_row:.1f} ms per row")
    print(f"a row of no work takes {1e3 * wall / options.rows:.1f} ms with {options.jobs} workers")
    work_s = options.length / duration_s * run["cpu_s"]
    print(f"per recording of {options.length:g} s: {100 * per_row / work_s:.3f} % of its {work_s:.0f} s of CPU")
    slots = options.nodes * options.cores // THREADS_PER_TASK
    waves = -(-options.recordings // slots)
    computing = waves * options.length / speed
    scheduling = options.recordings * 2 * per_row
    terabytes = READINGS * options.recordings * megabytes / duration_s * options.length / 1e6
    print(
        f"\n{options.recordings} recordings of {options.length:g} s, {options.nodes} nodes with {options.cores} cores:"
    )
    print(
        f"computing   {computing:8.0f} s  ({slots} runs at a time, {waves} after each other, {speed:.2f} of real time)"
    )
    print(f"scheduling  {scheduling:8.0f} s  (two rows per recording, one after the other in one process)")
    for rate in options.storage:
        reading = terabytes * 1e6 / rate
        limit = max((reading, "storage"), (computing, "computing"), (scheduling, "scheduling"))[1]
        useful = round(rate / (READINGS * megabytes / duration_s * speed))
        print(
            f"reading     {reading:8.0f} s  ({terabytes:.1f} TB at {rate:g} MB/s; limited by {limit}; "
            f"the storage feeds {useful} runs at a time)"
        )


if __name__ == "__main__":
    main()
