"""`cmaxslam-fbp report`: make the page of a run again."""

from __future__ import annotations

import typer

from cmaxslam_fbp.cli.options import RunPath, warn


def report(path: RunPath) -> None:
    """Write report.html into the folder of a run, from the files there, and print its path."""
    from cmaxslam_fbp.report.page import write_report

    typer.echo(write_report(path, warn))
