"""Compute rows: in this process, on workers of this machine, on any Dask cluster, or as jobs of SLURM."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from cmaxslam_fbp.config import read_yaml
from cmaxslam_fbp.errors import ConfigError, MissingExtraError
from cmaxslam_fbp.rows.row import Row, Values

THREADS_PER_TASK = 2  # a run reads and estimates velocities in one thread, and adjusts its windows in another

OnRow = Callable[[str, int, int], None]  # what is being done; how many rows are done, of how many
OnStart = Callable[[Row], None]
Outcomes = Generator[tuple[Row, "Values | Exception"], None, None]


class Pool(Protocol):
    """Workers that compute several rows at a time."""

    def outcomes(self, waiting: deque[Row], out: Path, on_start: OnStart) -> Outcomes:
        """Do what the function `outcomes` does."""
        ...


def outcomes(waiting: deque[Row], out: Path, pool: Pool | None = None, on_start: OnStart | None = None) -> Outcomes:
    """Yield rows with their results, or with the errors that ended them, as they are finished.

    Parameters
    ----------
    waiting : rows to compute, the first one first; more may be put in while others are computed
    out : folder of the results
    pool : where to compute; None for this process
    on_start : called with a row when its computation starts
    """
    tell = on_start or (lambda row: None)
    if pool is not None:
        yield from pool.outcomes(waiting, out, tell)
        return
    while waiting:
        row = waiting.popleft()
        tell(row)
        try:
            outcome: Values | Exception = row.compute(out)
        except Exception as error:  # it costs its own row only; the caller decides what becomes of the others
            outcome = error
        yield row, outcome


def run_rows(rows: Sequence[Row], out: Path, *, pool: Pool | None = None, on_row: OnRow | None = None) -> list[Values]:
    """Return the results of the rows, in their order; the first error among them is raised.

    A row that an earlier run finished is not computed again. Ctrl-C raises `KeyboardInterrupt`: finished rows are kept.

    Parameters
    ----------
    rows : what to compute; rows with the same key are computed once
    out : folder of the study
    pool : where to compute; None for this process
    on_row : called before the first row and after each
    """
    tell = on_row or (lambda name, done, total: None)
    results = {row.key: values for row in rows if (values := row.known(out)) is not None}
    missing = deque({row.key: row for row in rows if row.key not in results}.values())
    total = len(results) + len(missing)
    tell(missing[0].name if missing else "", len(results), total)
    with closing(outcomes(missing, out, pool, lambda row: tell(row.name, len(results), total))) as finished:
        for row, outcome in finished:
            if isinstance(outcome, Exception):
                raise outcome
            results[row.key] = outcome
            tell(row.name, len(results), total)
    return [results[row.key] for row in rows]


@dataclass(frozen=True)
class PoolSettings:
    """What a pool is made of.

    Attributes
    ----------
    jobs : int, optional
        Workers on this machine; one computes in this process. By default as many as have two cores each, or one where
        Dask is not installed.
    scheduler : str, optional
        Address of a Dask scheduler (tcp://HOST:PORT), or its scheduler file.
    slurm : Path, optional
        YAML file with options for `dask_jobqueue.SLURMCluster`, and `jobs` and `tasks_per_job`.
    memory : str, optional
        Of each worker on this machine, as "4GB"; one that needs more is ended. By default its share of what there is.
    """

    jobs: int | None = None
    scheduler: str | None = None
    slurm: Path | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ConfigError(f"--jobs must be 1 or more, not {self.jobs}")
        given = [self.jobs is not None, self.scheduler is not None, self.slurm is not None]
        if sum(given) > 1:
            raise ConfigError("give one of --jobs, --scheduler and --slurm: each says where the work is done")
        if self.memory is not None and (self.scheduler or self.slurm):
            raise ConfigError("--memory is for workers on this machine; those of a cluster get theirs where they start")


IN_THIS_PROCESS = PoolSettings(jobs=1)


@contextmanager
def open_pool(settings: PoolSettings) -> Iterator[Pool | None]:
    """Start workers, or connect to them, and end them at the end; None stands for this process."""
    jobs = settings.jobs or (max((os.cpu_count() or 1) // THREADS_PER_TASK, 1) if _has_dask() else 1)
    if jobs == 1 and not settings.scheduler and not settings.slurm:
        yield None
        return
    if not _has_dask():
        raise MissingExtraError(
            "several runs at a time need Dask: pip install 'cmaxslam-fbp[cluster]', or give --jobs 1"
        )
    from cmaxslam_fbp.rows import dask_pool

    if settings.scheduler:
        opened = dask_pool.connected(settings.scheduler)
    elif settings.slurm:
        opened = dask_pool.slurm(*slurm_options(settings.slurm))
    else:
        opened = dask_pool.local(jobs, settings.memory)
    with opened as pool:
        yield pool


def slurm_options(path: Path) -> tuple[dict[str, Any], int]:
    """Read the options of a `SLURMCluster`, and how many jobs to ask for.

    `tasks_per_job` stands for the options that give each task a process of its own with one Dask thread and two cores.
    """
    options = read_yaml(path)
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise ConfigError(f"{path} has no options for SLURM: expected lines like `queue: cpu`")
    jobs, tasks = options.pop("jobs", 1), options.pop("tasks_per_job", 1)
    for name, value in (("jobs", jobs), ("tasks_per_job", tasks)):
        if not isinstance(value, int) or not 1 <= value <= 100_000:
            raise ConfigError(f"{path}: {name} must be a whole number, 1 or more, not {value!r}")
    if "memory" not in options:
        raise ConfigError(f"{path}: memory is missing; give that of a whole job, e.g. memory: 8GB")
    return {"cores": tasks, "processes": tasks, "job_cpu": THREADS_PER_TASK * tasks, **options}, jobs


def _has_dask() -> bool:
    return find_spec("distributed") is not None
