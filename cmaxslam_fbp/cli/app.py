"""The root of the command line, and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from cmaxslam_fbp import __version__
from cmaxslam_fbp.cli.batch import batch
from cmaxslam_fbp.cli.calibrate import calibrate
from cmaxslam_fbp.cli.compare import compare
from cmaxslam_fbp.cli.config import config_app
from cmaxslam_fbp.cli.convert import convert
from cmaxslam_fbp.cli.doctor import doctor
from cmaxslam_fbp.cli.evaluate import evaluate
from cmaxslam_fbp.cli.formats import formats
from cmaxslam_fbp.cli.info import info
from cmaxslam_fbp.cli.options import FormatsCommand, RefiningCommand
from cmaxslam_fbp.cli.render import render
from cmaxslam_fbp.cli.report import report
from cmaxslam_fbp.cli.reproduce import reproduce
from cmaxslam_fbp.cli.run import run
from cmaxslam_fbp.cli.simulate import simulate
from cmaxslam_fbp.cli.velocity import velocity
from cmaxslam_fbp.cli.view import view

app = typer.Typer(
    name="cmaxslam-fbp",
    help="Rotational event-camera SLAM by contrast maximisation with functional backpropagation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Rotational event-camera SLAM by contrast maximisation with functional backpropagation."""


app.command(cls=RefiningCommand)(run)
app.command(cls=RefiningCommand)(batch)
app.command(cls=FormatsCommand)(calibrate)
app.command(cls=FormatsCommand)(info)
app.command(cls=FormatsCommand)(convert)
app.command(cls=FormatsCommand)(simulate)
app.command(cls=FormatsCommand)(velocity)
app.command()(evaluate)
app.command()(report)
app.command()(view)
app.command()(render)
app.command()(compare)
app.command()(reproduce)
app.command()(formats)
app.command()(doctor)
app.add_typer(config_app, name="config")
