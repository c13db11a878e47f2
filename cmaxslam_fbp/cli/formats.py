"""`cmaxslam-fbp formats`: what is read and written, and whether what it needs is installed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import typer

from cmaxslam_fbp.cli.options import Json


@dataclass(frozen=True)
class Format:
    """One line of the table: what a format holds beside the events, and what is missing to read it."""

    name: str
    read: str
    written: list[str]
    imu: bool
    ground_truth: bool
    calibration: bool
    missing: list[str]


def formats(as_json: Json = False) -> None:
    """List the formats of recordings: what each holds beside events, how it is written, and what is installed."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    found = _formats()
    if as_json:
        typer.echo(json.dumps([asdict(form) for form in found], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("format", "read", "written", "IMU", "ground truth", "calibration", "installed"):
        table.add_column(heading, overflow="fold")
    for form in found:
        parts = ("yes" if part else "" for part in (form.imu, form.ground_truth, form.calibration))
        advice = f"no {', '.join(form.missing)}: pip install 'cmaxslam-fbp[formats]'" if form.missing else "yes"
        table.add_row(form.name, escape(form.read), " ".join(form.written), *parts, escape(advice))
    Console().print(table, highlight=False)


def _formats() -> list[Format]:
    from importlib.util import find_spec

    from cmaxslam_fbp.choices import FORMATS
    from cmaxslam_fbp.io import Recording

    found = []
    for name in FORMATS.names():
        form = FORMATS[name]
        parts = ("_imu", "_poses", "_own_calibration")
        imu, poses, calibration = (getattr(form, part) is not getattr(Recording, part) for part in parts)
        missing = [module for module in form.needs if find_spec(module) is None]
        written = [ending or "folder" for ending in form.sinks]
        found.append(Format(name, form.description, written, imu, poses, calibration, missing))
    return found
