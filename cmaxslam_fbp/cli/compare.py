"""`cmaxslam-fbp compare`: several runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import Json, warn


def compare(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Folders of runs.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Also write plots (PNG) and compare.html there.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")] = False,
    as_json: Json = False,
) -> None:
    """Print errors and speed of several runs side by side, and plot them."""
    from rich.console import Console

    from cmaxslam_fbp.io.run_folder import create_run_folder
    from cmaxslam_fbp.report.comparison import FILES, comparison_table, figures, read_runs, write_comparison

    runs = read_runs(paths)
    warn(*(line for files in runs.values() for line in files.faults))
    folder = None if out is None else create_run_folder(out, overwrite=overwrite, files=FILES)
    if as_json:
        typer.echo(json.dumps(figures(runs), indent=2, allow_nan=False))
    else:
        Console().print(comparison_table(runs), highlight=False)
    if folder is not None:
        written = write_comparison(runs, folder)
        typer.echo("\n".join(map(str, written)), err=as_json)
