"""`cmaxslam-fbp info`: what a recording contains."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cmaxslam_fbp.cli.options import Json, Quiet, RecordingOptions, RecordingPath, takes_recording, warn

if TYPE_CHECKING:
    from cmaxslam_fbp.io.summary import Summary


@takes_recording
def info(
    path: RecordingPath,
    source: RecordingOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print what a recording contains: topics, sensor, events, rates, calibration, ground truth."""
    from cmaxslam_fbp.cli.progress import event_progress
    from cmaxslam_fbp.io.summary import summarize

    recording = source.open(path)
    with event_progress("reading", quiet=quiet, total_s=source.duration) as progress:
        summary = summarize(recording, source.start, source.duration, progress)
    if as_json:
        typer.echo(json.dumps(asdict(summary), indent=2))
    else:
        _print(summary)
    warn(*summary.defects.describe(), *recording.check_reference())


def _print(summary: Summary) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("recording", summary.path)
    table.add_row("sensor", f"{summary.width} x {summary.height} pixels")
    table.add_row("events", f"{summary.events:,} ({100 * summary.positive_fraction:.1f} % positive)")
    table.add_row("start", f"{summary.start_ns / 1e9:.6f} s")
    table.add_row("duration", f"{summary.duration_s:.6f} s")
    table.add_row(
        "event rate",
        f"{summary.mean_rate_ev_s / 1e6:.3f} Mev/s mean, {summary.peak_rate_ev_s / 1e6:.3f} Mev/s peak (over 10 ms)",
    )
    if summary.calibration is None:
        table.add_row("calibration", "none (give one with --calib)")
    else:
        camera = summary.calibration
        intrinsics = f"fx {camera.fx:.3f} fy {camera.fy:.3f} cx {camera.cx:.3f} cy {camera.cy:.3f}"
        table.add_row("calibration", intrinsics)
        table.add_row("", f"{camera.distortion_model} " + " ".join(f"{c:g}" for c in camera.distortion))
    if summary.ground_truth_poses:
        poses = f"{summary.ground_truth_poses:,} poses over {summary.ground_truth_duration_s:.3f} s"
    else:
        poses = "none"
    table.add_row("ground truth", poses)
    table.add_row("IMU", f"{summary.imu_samples:,} samples" if summary.imu_samples else "none")
    for number, (name, kind, count) in enumerate(summary.topics):
        table.add_row("" if number else "contents", f"{name}  {kind}  {count:,}")
    Console(soft_wrap=True, markup=False).print(table, highlight=False)
