"""`cmaxslam-fbp report`: make the page of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Folder of a run: what cmaxslam-fbp run wrote.")]


def warn(line: str) -> None:
    """Print a warning."""
    typer.echo(f"warning: {line}", err=True)


def report(path: RunPath) -> None:
    """Write report.html into the folder of a run, from the files there, and print its path."""
    from cmaxslam_fbp.report.page import write_report

    typer.echo(write_report(path, warn))
