"""Workers of a real cluster: what they compute is what this process computes, and what they lose is done again."""

import os
import pickle
import signal
import stat
import sys
from collections import deque

import pytest

from cmaxslam_fbp.errors import ConfigError, OutputError
from cmaxslam_fbp.rows import row as rows_row
from cmaxslam_fbp.rows.row import Row
from cmaxslam_fbp.rows.running import PoolSettings, open_pool, outcomes, run_rows

pytest.importorskip("distributed")
from cmaxslam_fbp.rows.dask_pool import compute, computing, local

WORK = '''
import os, resource, signal, time
import numpy as np
import psutil

def double(settings, out):
    return {"double": 2 * settings["number"]}

def die(settings, out):
    """End the worker, so many times."""
    mark = out / settings["name"]
    count = int(mark.read_text()) if mark.exists() else 0
    mark.write_text(str(count + 1))
    if count < settings["times"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"survived": count}

def churn(settings, out):
    """Return how many pages the system had to find for arrays that are freed at once."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(1 << 17)
    return {"faults": resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before}

def fail(settings, out):
    raise ValueError("no such thing")

def where(settings, out):
    pause = os.environ.get("DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE")
    return {"variable": os.environ.get("SLURM_FAKE"), "pause": pause, "process": os.getpid()}

kept = []

def fill(settings, out):
    """Keep so much memory, and stay long enough for Dask to see it."""
    while psutil.Process().memory_info().rss < settings["bytes"]:
        kept.append(np.ones(1 << 17))
    time.sleep(1.2)
    return {}
'''


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A module that workers can import: they have this process's path."""
    (tmp_path / "work_of_rows.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    import work_of_rows

    yield work_of_rows
    del sys.modules["work_of_rows"]


def test_a_lost_row_is_done_again_and_one_that_kills_twice_fails_alone(work, tmp_path):
    numbers = [Row(f"number {k}", work.double, {"number": k}) for k in range(6)]
    once = Row("once", work.die, {"name": "once", "times": 1})
    always = Row("always", work.die, {"name": "always", "times": 9})
    wrong, arrays = Row("wrong", work.fail), Row("arrays", work.churn)
    out = tmp_path / "out"
    out.mkdir()
    started = []
    with open_pool(PoolSettings(jobs=2)) as pool:
        rows = deque([numbers[0], once, always, wrong, *numbers[1:], arrays])
        found = {row.name: outcome for row, outcome in outcomes(rows, out, pool, lambda row: started.append(row.name))}
        with pytest.raises(ValueError, match="no such thing"):
            run_rows([*numbers, wrong], out, pool=pool)
    assert [found[row.name]["double"] for row in numbers] == [0, 2, 4, 6, 8, 10]
    assert found["once"]["survived"] == 1
    assert isinstance(found["always"], OutputError)
    assert "always: its worker was lost twice" in str(found["always"])
    assert (out / "always").read_text() == "2"
    assert str(found["wrong"]) == "no such thing"
    assert found["arrays"]["faults"] < 5_000  # of 51,200 pages: workers use freed memory again
    assert sorted(started) == sorted(found)
    assert [values["double"] for values in run_rows(numbers, out)] == [0, 2, 4, 6, 8, 10]
    assert not list(out.rglob("*.begun"))


def test_only_the_row_that_is_computed_is_blamed_for_its_worker(work, tmp_path):
    """Six workers die by three rows; the other rows wait at some of these, or have just been computed there."""
    killers = [Row(f"killer {k}", work.die, {"name": f"killer {k}", "times": 9}) for k in range(3)]
    others = [Row(f"other {k}", work.die, {"name": f"other {k}", "times": k % 2}) for k in range(4)]
    rows = deque([killers[0], others[0], killers[1], *others[1:], killers[2]])
    with open_pool(PoolSettings(jobs=2)) as pool:
        found = {row.name: outcome for row, outcome in outcomes(rows, tmp_path, pool)}
    assert [found[row.name]["survived"] for row in others] == [0, 1, 0, 1]
    assert [str(found[row.name]).partition(";")[0] for row in killers] == [
        f"killer {k}: its worker was lost twice" for k in range(3)
    ]
    assert [(tmp_path / row.name).read_text() for row in killers] == ["2", "2", "2"]


def test_workers_that_are_lost_while_they_start_are_replaced(work, tmp_path):
    import dask
    from distributed.core import Status

    rows = [Row(f"number {k}", work.double, {"number": k}) for k in range(3)]
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "0.5s"}),
        open_pool(PoolSettings(jobs=2)) as pool,
    ):
        processes = pool._client.run(os.getpid).values()
        for nanny in pool._cluster.workers.values():
            nanny.status = Status.starting  # as long as it waits for the word of its worker
        for process in processes:
            os.kill(process, signal.SIGKILL)
        assert [values["double"] for values in run_rows(rows, tmp_path, pool=pool)] == [0, 2, 4]


def test_a_worker_whose_memory_is_nearly_full_goes_on(work, tmp_path):
    """Dask would pause it until it has less, which it may never have."""
    with local(1, "600MB") as pool:
        run_rows([Row("much", work.fill, {"bytes": 0.87 * 600e6})], tmp_path, pool=pool)
        states = pool._client.run(lambda dask_worker: dask_worker.status.name)
    assert list(states.values()) == ["running"]


def test_a_worker_with_other_sources_refuses(work, tmp_path, monkeypatch):
    row = Row("one", work.double, {"number": 1})
    assert row.path(tmp_path).stem == row.key  # is known from here on, and travels with it
    sent = pickle.loads(pickle.dumps(row))
    monkeypatch.setattr(rows_row, "source_digest", lambda file: "edited")
    with pytest.raises(ConfigError, match="a worker has other sources"):
        compute(sent, True, str(tmp_path), 1)
    assert compute(sent, False, str(tmp_path), 1) == {"double": 2, "jobs": 1}


def test_losses_are_counted_until_a_row_has_ended(work, tmp_path):
    row = Row("one", work.double, {"number": 1})
    mark = row.path(tmp_path).with_suffix(".begun")
    with computing(row, tmp_path):
        assert mark.read_bytes() == b"."
    assert not mark.exists()
    mark.write_bytes(b"..")  # two losses
    with pytest.raises(OutputError, match="one: its worker was lost twice"):
        compute(row, True, str(tmp_path), 1)
    mark.write_bytes(b".")
    assert compute(row, True, str(tmp_path), 1) == {"double": 2, "jobs": 1}
    assert not mark.exists()
    assert compute(row, True, str(tmp_path), 5) == {"double": 2, "jobs": 1}  # known by now


FAKE_SBATCH = """#!/bin/sh
here=$(dirname "$0")
[ "$1" = --test-only ] && exec grep -q "#SBATCH --mem=" -
cp "$1" "$here/job.sh"
SLURM_FAKE=yes setsid sh "$here/job.sh" >"$here/job.log" 2>&1 &
echo "Submitted batch job $!"
"""
FAKE_SCANCEL = """#!/bin/sh
kill -TERM -- -"$1" 2>/dev/null || kill -TERM "$1"
"""


def test_slurm_s_jobs_compute_rows(work, tmp_path, monkeypatch):
    """Where there is no SLURM: `sbatch` runs the script that Dask has written for it."""
    pytest.importorskip("dask_jobqueue")
    for name, text in (("sbatch", FAKE_SBATCH), ("scancel", FAKE_SCANCEL)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "options.yaml").write_text("memory: 1GB\njobs: 1\ninterface: lo\n")
    with open_pool(PoolSettings(slurm=tmp_path / "options.yaml")) as pool:
        (values,) = run_rows([Row("where", work.where)], tmp_path, pool=pool)
    assert (values["variable"], values["pause"]) == ("yes", "False")
    assert values["process"] != os.getpid()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (None, "sbatch cannot be run"),
        ("#!/bin/sh\necho 'sbatch: error: invalid partition specified: cpu' >&2; exit 1\n", "invalid partition"),
    ],
)
def test_a_queue_that_takes_no_jobs_is_one_line(tmp_path, monkeypatch, program, words):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    if program is not None:
        (tmp_path / "sbatch").write_text(program)
        (tmp_path / "sbatch").chmod(stat.S_IRUSR | stat.S_IXUSR)
    (tmp_path / "options.yaml").write_text("memory: 1GB\ninterface: lo\n")
    with pytest.raises(ConfigError, match=words), open_pool(PoolSettings(slurm=tmp_path / "options.yaml")):
        pass


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr("cmaxslam_fbp.rows.dask_pool._PATIENCE_S", 0.3)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with (
            pytest.raises(ConfigError, match=f"no Dask scheduler at {address}"),
            open_pool(PoolSettings(scheduler=address)),
        ):
            pass
