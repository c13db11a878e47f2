"""`cmaxslam-fbp reproduce`: the paper's studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import Quiet, Scheduler


def reproduce(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="bias, reconstruction, surrogates, angular, linear, cost, slam, ecrot, flow, or all of them: all.",
        ),
    ],
    ecd: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with the ECD's sequences (.bag, .zip or text); default: simulated."),
    ] = None,
    dsec: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder with DSEC's events and flow, for the study of flow; default: simulated."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Results, tables, plots.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="About a minute: does it all work?")] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Rows at the same time, 1 by default; times then suffer.")
    ] = None,
    scheduler: Scheduler = None,
    packets: Annotated[
        int | None, typer.Option(metavar="N", help="Packets per sequence in the studies of velocities.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder with real slices, motion, and ECRot's bags; default: $CMAXSLAM_FBP_DATA."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Repeat a study of the paper: a CSV, a Markdown table beside the paper's figures, and plots.

    Finished rows are kept in the output folder: the same command goes on where an interrupted one stopped.
    """
    from cmaxslam_fbp.cli.progress import row_progress
    from cmaxslam_fbp.experiments.settings import StudySettings
    from cmaxslam_fbp.experiments.studies import reproduce as run_study
    from cmaxslam_fbp.rows.running import PoolSettings

    pool = PoolSettings(jobs if jobs is not None or scheduler else 1, scheduler)
    settings = StudySettings(out, ecd=ecd, data=data, quick=quick, pool=pool, packets=packets, dsec=dsec)
    try:
        with row_progress(study, quiet=quiet) as on_row:
            written = run_study(study, settings, on_row, lambda words: typer.echo(words, err=True))
    except KeyboardInterrupt:
        typer.echo(f"interrupted: finished rows are kept in {out}; the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    tables = [path for path in written if path.suffix == ".md"]
    if len(tables) == 2 and not quiet:  # one study, and the summary
        typer.echo(tables[0].read_text())
    for path in written:
        typer.echo(path)
