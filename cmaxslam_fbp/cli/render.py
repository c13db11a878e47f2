"""`cmaxslam-fbp render`: what a camera sees of a finished run's brightness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import RunPath, parse_size, read_run, seconds_option
from cmaxslam_fbp.errors import OutputError


def render(
    path: RunPath,
    pose: Annotated[float, seconds_option("Time whose orientation the view has, from the first event.")],
    size: Annotated[
        str, typer.Option(metavar="WIDTHxHEIGHT", parser=parse_size, help="Size of the picture.")
    ] = "640x480",
    field: Annotated[
        float | None,
        typer.Option(metavar="DEGREES", help="Horizontal field of view; default that of the run's camera."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Picture to write; default view.png there.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing picture.")] = False,
) -> None:
    """Render the view of a camera, at any time of a run, from the brightness that the run has found."""
    from cmaxslam_fbp.io.atomic_files import write_file
    from cmaxslam_fbp.report.map_picture import draw_brightness, encode_png, look, view_camera

    files = read_run(path)
    if files.log_intensity is None:
        raise OutputError(f"{path} has no intensity.npy; run it again, without --no-intensity")
    width, height = map(int, size.split("x"))
    if max(width, height) > 8192:
        raise OutputError(f"a picture of {size} pixels is too large; give at most 8192x8192")
    field_deg = files.field_deg() if field is None else field
    if not 1 <= field_deg <= 150:
        raise OutputError(f"a field of view of {field_deg:g} degrees is impossible; give 1 to 150")
    target = out or path / "view.png"
    if target.suffix != ".png":
        raise OutputError(f"the picture {target} must end in .png")
    if target.exists() and not overwrite:
        raise OutputError(f"{target} exists already; choose another name, or give --overwrite")
    R_wc = files.trajectory.rotation_at(files.start_ns + round(pose * 1e9)).as_matrix()
    seen = look(files.log_intensity, R_wc, view_camera(width, height, field_deg))
    write_file(target, encode_png(draw_brightness(seen)))
    typer.echo(target)
