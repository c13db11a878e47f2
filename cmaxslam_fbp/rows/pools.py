"""Where rows are computed: in this process, on workers of this machine, on any Dask cluster, or as jobs of SLURM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cmaxslam_fbp.config import read_yaml
from cmaxslam_fbp.errors import ConfigError, MissingExtraError
from cmaxslam_fbp.rows.running import Pool

THREADS_PER_TASK = 2  # a run reads and estimates velocities in one thread, and adjusts its windows in another


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
