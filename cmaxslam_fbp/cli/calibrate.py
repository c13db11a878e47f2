"""`cmaxslam-fbp calibrate`: the lens from the recording itself."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cmaxslam_fbp.cli.options import (
    Json,
    Quiet,
    RecordingOptions,
    RecordingPath,
    choice_option,
    open_configured,
    takes_recording,
)
from cmaxslam_fbp.errors import OutputError

if TYPE_CHECKING:
    from cmaxslam_fbp.pipeline.calibrating import RecordingCalibration

_LENS = "Lens"
_lens_option = partial(typer.Option, rich_help_panel=_LENS)
_MODELS = ("pinhole", "plumb_bob", "equidistant")


@takes_recording
def calibrate(
    path: RecordingPath,
    source: RecordingOptions,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The calibration to write.")] = Path(
        "camera.yaml"
    ),
    model: Annotated[
        str, choice_option(_MODELS, "No distortion, that of most lenses, or a fisheye's.", _LENS)
    ] = "plumb_bob",
    focal: Annotated[
        float | None, _lens_option(metavar="PX", min=1, help="A guess: no other field of view is tried.")
    ] = None,
    field_of_view: Annotated[
        float | None, _lens_option(metavar="DEG", min=5, max=160, help="A guess, of the sensor's width.")
    ] = None,
    fix: Annotated[
        list[str] | None,
        _lens_option(
            metavar="NAME",
            help="Keep as it is: focal (the guess), aspect (fx = fy), cx, cy (the middle), k1, ...; may be repeated.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page: parameters, field of view, sharpness over the image."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find focal length, principal point and distortion from the events of a camera that turns.

    Writes a calibration in OpenCV's layout, for --calib; what the motion does not tell is held, and named.
    """
    from cmaxslam_fbp.cli.progress import stage_progress
    from cmaxslam_fbp.io.atomic_files import write_file
    from cmaxslam_fbp.pipeline import calibrating, calibration_results

    for file, option in ((out, "--out"), (report, "--report")):
        if file is not None and file.exists() and not overwrite:
            raise OutputError(f"{file} exists already; choose another name with {option}, or give --overwrite")
    guess = calibrating.CalibrationGuess(model, focal, field_of_view, tuple(fix or ()))
    settings = source.configure()
    recording = open_configured(path, settings)
    try:
        with stage_progress(quiet=quiet or as_json) as on_stage:
            found = calibrating.calibrate(
                recording, guess, settings, start_s=source.start, duration_s=source.duration, on_stage=on_stage
            )
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {out} was not written", err=True)
        raise typer.Exit(130) from None
    write_file(out, calibration_results.format_calibration(found))
    if report is not None:
        write_file(report, calibration_results.calibration_page(found, recording.path.name))
    if as_json:
        typer.echo(json.dumps(calibration_results.summary(found) | {"file": str(out)}, indent=2, allow_nan=False))
    else:
        print_calibration(found, out)


def print_calibration(found: RecordingCalibration, out: Path | None) -> None:
    """Print what was found, parameter by parameter."""
    from rich.console import Console
    from rich.table import Table

    from cmaxslam_fbp.pipeline.calibration_results import parameter_rows, summary

    figures = summary(found)
    table = Table(box=None, pad_edge=False)
    for heading in ("parameter", "value", "deviation", ""):
        table.add_column(heading, justify="left" if heading in ("parameter", "") else "right")
    for row in parameter_rows(found.lens):
        table.add_row(row.name, f"{row.value:.6g}", f"{row.deviation:.2g}", "" if row.observed else "not observed")
    console = Console(markup=False)
    console.print(table, highlight=False)
    console.print(
        f"field of view {figures['field_of_view_deg'][0]:.1f} x {figures['field_of_view_deg'][1]:.1f} deg; contrast "
        f"{figures['contrast_before']:.4g} with the first lens, {figures['contrast']:.4g} with this one",
        highlight=False,
    )
    if figures["remark"]:
        console.print(figures["remark"], highlight=False)
    if (imu := found.imu) is not None:
        axes = "" if imu.observed else "; the camera turned about one axis, which does not tell how it lies"
        ratio = "which across the optical axis are too small to compare"
        if imu.rate_ratio_deviation < 1:
            ratio = (
                f"which are {imu.rate_ratio:.4f} (deviation {imu.rate_ratio_deviation:.2g}) of its own across the axis"
            )
        console.print(
            f"gyroscope: {imu.rms_deg_s:.2f} deg/s RMS from the camera's rates, {ratio}; "
            f"its clock is {1e3 * imu.time_offset_s:+.2f} ms ahead{axes}",
            highlight=False,
        )
    if out is not None:
        console.print(f"{out}: give it with --calib", highlight=False)
