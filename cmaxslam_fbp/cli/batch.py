"""`cmaxslam-fbp batch`: many recordings, each with several configurations."""

from __future__ import annotations

import re
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cmaxslam_fbp.cli.options import Assignments, Duration, Quiet, Refine, Scheduler, Start

if TYPE_CHECKING:
    from cmaxslam_fbp.batch.batch import Batch

_where_option = partial(typer.Option, rich_help_panel="Where")


def _parse_seeds(text: str) -> str:
    if not re.fullmatch(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", text):
        raise typer.BadParameter(f"{text!r} is not a list of seeds, e.g. 1,2,3 or 51-53")
    return text


def batch(
    recordings: Annotated[
        list[str],
        typer.Argument(
            metavar="RECORDINGS...", help="Recordings ({readable}), patterns of them, or a YAML list that says more."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of all runs, rows.csv, index.html.")],
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="A[+B]", help="A configuration; may be repeated: each is run. + joins."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--config-grid", metavar="SECTION.KEY=V1,V2", help="Each with each value; may be repeated."),
    ] = None,
    assignments: Assignments = None,
    refine: Refine = None,
    repeat: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS",
            parser=_parse_seeds,
            help="Once per seed (1,2,3 or 1-3), which draws what is simulated.",
        ),
    ] = None,
    start: Start = None,
    duration: Duration = None,
    jobs: Annotated[
        int | None, _where_option(metavar="N", help="Runs at a time on this machine; default: one per two cores.")
    ] = None,
    memory: Annotated[str | None, _where_option(metavar="4GB", help="Most memory of a run on this machine.")] = None,
    scheduler: Scheduler = None,
    slurm: Annotated[
        Path | None, _where_option(metavar="FILE.yaml", help="Ask SLURM for workers, with these options.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run many recordings with many configurations, on this machine or on a cluster.

    What is done and unchanged is not done again: the same command goes on where an earlier one was stopped, and tries
    again what has failed. Exit code 1: some runs failed.
    """
    from rich.console import Console

    from cmaxslam_fbp.batch.arms import make_arms
    from cmaxslam_fbp.batch.batch import Batch
    from cmaxslam_fbp.batch.manifest import read_items
    from cmaxslam_fbp.batch.results import Refresher, summary_table, write_page, write_rows
    from cmaxslam_fbp.cli.progress import batch_progress
    from cmaxslam_fbp.io.run_folder import make_folder
    from cmaxslam_fbp.rows.running import PoolSettings, open_pool

    where = PoolSettings(jobs, scheduler, slurm, memory)
    seeds = _seeds(repeat)
    items = read_items(recordings, start_s=start, duration_s=duration, seeds=seeds)
    arms = make_arms(config or (), grid or (), assignments or ())
    make_folder(out)
    work = Batch(items, arms, out, seeds=seeds, refine=refine == "contrast" or refine or False)
    work.plan()
    interrupted = False
    try:
        if work.waiting:
            signal.signal(signal.SIGTERM, _interrupt)  # what a queue sends when the time is up
            with open_pool(where) as pool, batch_progress(quiet=quiet) as advance:
                refresh = Refresher()

                def on_change(work: Batch) -> None:
                    advance(work)
                    refresh(work)

                work.run(pool, on_change)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        write_rows(work)
        page = write_page(work)
    if not quiet:
        Console().print(summary_table(work))
    _end(work, page, interrupted)


def _seeds(text: str | None) -> list[int]:
    """Return the seeds of `1,2,5-7`."""
    seeds: dict[int, None] = {}
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not 0 <= int(last or first) - int(first) <= 10_000:
            raise typer.BadParameter(f"{part} is no range of seeds, or one of too many")
        seeds.update(dict.fromkeys(range(int(first), int(last or first) + 1)))
    return list(seeds)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _end(work: Batch, page: Path, interrupted: bool) -> None:
    """Say how it went, and end the program accordingly."""
    done, failed = work.in_state("done"), work.in_state("failed")
    new = sum(cell.is_new for cell in done)
    if len(done) == len(work.cells) and not new:
        typer.echo(f"nothing to do: all {len(done)} runs are done and unchanged")
    else:
        typer.echo(f"{new} runs done, {len(done) - new} known from earlier, {len(failed)} failed")
    typer.echo(f"open {page}")
    for cell in failed:
        typer.echo(f"failed: {cell.name}: {cell.error}", err=True)
    if interrupted:
        typer.echo(f"interrupted: {len(done)} of {len(work.cells)} runs are kept; the same command goes on", err=True)
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)
