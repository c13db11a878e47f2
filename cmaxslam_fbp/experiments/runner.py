"""Compute the rows of a study: those that are not known yet, one after the other or in several processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.experiments.rows import Row, Values

OnRow = Callable[[str, int, int], None]  # what is being done; how many rows are done, of how many


def run_rows(rows: Sequence[Row], out: Path, *, jobs: int = 1, on_row: OnRow | None = None) -> list[Values]:
    """Return the results of the rows, in their order.

    A row that an earlier run finished is not computed again. Ctrl-C raises `KeyboardInterrupt`: finished rows are kept.

    Parameters
    ----------
    rows : what to compute; rows with the same key are computed once
    out : folder of the study
    jobs : number of processes; with one, everything happens in this one
    on_row : called before the first row and after each
    """
    tell = on_row or (lambda name, done, total: None)
    results = {row.key: values for row in rows if (values := row.known(out)) is not None}
    missing = list({row.key: row for row in rows if row.key not in results}.values())
    total = len({row.key for row in rows})
    tell(missing[0].name if missing else "", len(results), total)
    if jobs <= 1 or len(missing) <= 1:
        for row in missing:
            tell(row.name, len(results), total)
            results[row.key] = row.compute(out)
            tell(row.name, len(results), total)
    else:
        with closing(_run_in_processes(missing, out, jobs)) as finished:
            for row, values in finished:
                results[row.key] = values
                tell(row.name, len(results), total)
    return [results[row.key] for row in rows]


def _run_in_processes(rows: Sequence[Row], out: Path, jobs: int) -> Generator[tuple[Row, Values], None, None]:
    """Yield rows with their results, as they are finished."""
    # Fresh processes: a fork of one that has run compiled code with threads can hang.
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(rows)), context, initializer=_die_at_interrupt)
    finished = False
    try:
        waiting = {pool.submit(row.compute, out, jobs): row for row in rows}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
        finished = True
    except BrokenProcessPool:
        raise OutputError("a process of the study ended early (out of memory?); give fewer --jobs and go on") from None
    finally:
        if not finished:
            _end(set(multiprocessing.active_children()) - before, out)
        pool.shutdown(wait=finished, cancel_futures=True)


def _end(processes: set[multiprocessing.process.BaseProcess], out: Path) -> None:
    """End processes in the middle of their work, and remove the files that they had not finished."""
    for process in processes:
        process.terminate()
        process.join()
        for path in out.rglob(f".*.{process.pid}.part"):
            path.unlink(missing_ok=True)


def _die_at_interrupt() -> None:
    """Ctrl-C reaches all processes: the others end without a word, the first one tells."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
