"""Workers of Dask distributed: the only module that imports it."""

from __future__ import annotations

import ctypes
import logging
import subprocess
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import dask

from cmaxslam_fbp.errors import ConfigError, OutputError
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.rows.running import OnStart, Outcomes

_NEVER_AT = ("target", "spill", "pause")  # shares of a worker's memory at which Dask would do something

# Rows count themselves how often their workers were lost (`computing`). Dask's own count has those too that only waited
# at a worker, and is the last resort. What Dask does beside (samples of all stacks, figures of the system, copies of
# results) would take time from the rows. A worker whose memory is nearly full has nothing to put aside, and one that is
# paused until it has less would wait for ever: it computes, and is ended where that takes too much.
dask.config.set(
    {
        "distributed.scheduler.allowed-failures": 10,
        "distributed.scheduler.active-memory-manager.start": False,
        "distributed.worker.profile.enabled": False,
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.memory.monitor-interval": "500ms",
        **{f"distributed.worker.memory.{name}": False for name in _NEVER_AT},
        "distributed.admin.system-monitor.interval": "5s",
        "distributed.admin.tick.interval": "500ms",
        "logging": {"distributed": "critical"},
    }
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Dask's own dependencies
    from distributed import Client, Future, KilledWorker, LocalCluster
    from distributed.system import MEMORY_LIMIT
    from distributed.utils import get_mp_context

LOSSES = 2  # of the worker that computes it: then a row has failed
_LOOK_EVERY_S = 1.0  # for workers that have come or gone
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
# What most rows need is imported once, by the process that all workers are forked from.
_IMPORTED = ["distributed.nanny", "distributed.worker", "cmaxslam_fbp.batch.run_task"]
_ANY_PORT = "localhost:0"  # of Dask's own page: the usual one may be taken
_PATIENCE_S = 30.0  # for a scheduler, and for its first worker


class DaskPool:
    """Rows on the workers of a client: as many at a time as these have threads."""

    def __init__(self, client: Client, cluster: LocalCluster | None = None, workers: int = 0) -> None:
        self._client, self._cluster, self._workers = client, cluster, workers

    def outcomes(self, waiting: deque[Row], out: Path, on_start: OnStart) -> Outcomes:
        """Yield rows with their results, or with the errors that ended them, as they are finished."""
        place = str(out.resolve())
        running: dict[Future, Row] = {}
        done: SimpleQueue[Future] = SimpleQueue()
        try:
            while waiting or running:
                slots = self._slots()
                while waiting and len(running) < slots:
                    row = waiting.popleft()
                    _mark(row, out).unlink(missing_ok=True)  # of a batch that was ended
                    future = self._client.submit(
                        compute, row, self._cluster is None, place, slots, key=_name(row), pure=False
                    )
                    running[future] = row
                    future.add_done_callback(done.put)
                    on_start(row)
                with suppress(Empty):
                    future = done.get(timeout=_LOOK_EVERY_S)
                    row = running.pop(future)
                    outcome = _outcome(row, future)
                    _mark(row, out).unlink(missing_ok=True)
                    yield row, outcome
        finally:
            if running:
                with suppress(Exception):  # the scheduler may have gone
                    self._client.cancel(list(running), force=True)

    def _slots(self) -> int:
        """Return how many rows the workers can compute at a time now; ask for those that are missing.

        Dask restarts a worker that is lost, but not one that is lost while it starts.
        """
        try:
            threads = self._client.nthreads()
        except (OSError, RuntimeError) as error:
            raise OutputError(f"the Dask scheduler is gone ({error}); the same command goes on from here") from None
        if self._cluster is not None and len(threads) < self._workers:
            self._cluster.scale(self._workers)
        return int(sum(threads.values()))


def compute(row: Row, is_elsewhere: bool, out: str, jobs: int) -> Values:
    """Compute a row on a worker; the sources of one that is elsewhere must be those that the row's key was made of."""
    if is_elsewhere and replace(row).key != row.key:
        raise ConfigError("a worker has other sources of cmaxslam-fbp than this program; install the same on all")
    keep_freed_memory()
    known = row.known(Path(out))  # of a worker that was lost before it had passed it on
    if known is not None:
        return known
    with computing(row, Path(out)):
        return row.compute(Path(out), jobs)


@cache
def keep_freed_memory() -> None:
    """Let this process use freed memory again, as other programs do (glibc's `mallopt`).

    Dask has its workers give it back to the system after each array, and zeroing new pages costs a run half its time.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)


@contextmanager
def computing(row: Row, out: Path) -> Iterator[None]:
    """Count in a file, a byte each, how often a row's computation began and did not end; after two losses, refuse.

    The file of a row that is refused stays until its outcome has arrived: the worker may be lost by another row before.
    """
    mark = _mark(row, out)
    mark.parent.mkdir(parents=True, exist_ok=True)
    with mark.open("ab") as file:
        losses = file.tell()
        file.write(b".")
    if losses >= LOSSES:
        raise _lost_twice(row)
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def _mark(row: Row, out: Path) -> Path:
    return row.path(out).with_suffix(".begun")


def _lost_twice(row: Row) -> OutputError:
    return OutputError(
        f"{row.name}: its worker was lost twice; too little memory (--memory), or a crash of the process?"
    )


def _name(row: Row) -> str:
    """Return a key of Dask: the same row may come again in the life of a cluster."""
    return f"{row.name} {row.key}"


def _outcome(row: Row, future: Future) -> Values | Exception:
    try:
        return future.result()
    except KilledWorker:
        return _lost_twice(row)
    except Exception as error:
        return error


@contextmanager
def local(jobs: int, memory: str | None) -> Iterator[DaskPool]:
    """Start workers on this machine: processes of their own, one row at a time in each."""
    try:
        limit = dask.utils.parse_bytes(memory) if memory else MEMORY_LIMIT // jobs
    except ValueError:
        raise ConfigError(f"--memory {memory} is no amount of memory; give one as 4GB") from None
    get_mp_context().set_forkserver_preload(_IMPORTED)
    cluster = LocalCluster(
        n_workers=jobs,
        threads_per_worker=1,
        processes=True,
        memory_limit=limit,
        dashboard_address=_ANY_PORT,
        silence_logs=logging.CRITICAL,
        preload=["cmaxslam_fbp.rows.worker_setup"],
    )
    with cluster, Client(cluster) as client:
        yield DaskPool(client, cluster, jobs)


@contextmanager
def slurm(options: dict[str, Any], jobs: int) -> Iterator[DaskPool]:
    """Ask SLURM for jobs with workers in them; rows start when the first of them does."""
    from dask_jobqueue import SLURMCluster

    lines = [f"export DASK_DISTRIBUTED__WORKER__MEMORY__{name.upper()}=False" for name in _NEVER_AT]
    options = {"scheduler_options": {"dashboard_address": _ANY_PORT}, **options}
    try:
        options["job_script_prologue"] = [*lines, *options.get("job_script_prologue", ())]
        cluster = SLURMCluster(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"SLURM's options do not fit: {error}") from None
    with cluster:
        _try_out(cluster.job_script())
        with Client(cluster) as client:
            cluster.scale(jobs=jobs)
            yield DaskPool(client)


def _try_out(script: str) -> None:
    """Ask SLURM whether it would take a job: one that it refuses later is only logged, and rows would wait for ever."""
    try:
        tried = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigError(f"SLURM's sbatch cannot be run: {error.strerror or error}; is this a login node?") from None
    if tried.returncode:
        raise ConfigError(f"SLURM takes no such job: {tried.stderr.strip() or tried.stdout.strip()}")


@contextmanager
def connected(address: str) -> Iterator[DaskPool]:
    """Connect to a scheduler, by its address or its file; its workers are its own affair."""
    place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = Client(**place, timeout=_PATIENCE_S)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"no Dask scheduler at {address}: {error}; give tcp://HOST:PORT or its file") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            raise ConfigError(f"the Dask scheduler at {address} has no workers; start some first") from None
        yield DaskPool(client)
