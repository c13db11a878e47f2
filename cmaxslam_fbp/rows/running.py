"""Compute rows: those that are not known yet, one after the other in this process, or on a pool of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from cmaxslam_fbp.rows.row import Row, Values

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
