"""`cmaxslam-fbp velocity`: the camera's velocity, packet by packet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmaxslam_fbp.choices import KERNELS, MODELS, RECONSTRUCTIONS, SCORES, SOLVERS
from cmaxslam_fbp.cli.options import (
    Compute,
    Device,
    Json,
    Quiet,
    RecordingOptions,
    RecordingPath,
    choice_option,
    open_configured,
    takes_recording,
    warn,
)

if TYPE_CHECKING:
    from cmaxslam_fbp.arrays import FloatArray, IntArray
    from cmaxslam_fbp.events import Events
    from cmaxslam_fbp.frontend import VelocityEstimate, VelocityEstimator
    from cmaxslam_fbp.io import Recording

_METHOD = "Method"


@takes_recording
def velocity(
    path: RecordingPath,
    source: RecordingOptions,
    model: Annotated[str | None, choice_option(MODELS.names(), "Motion model.", _METHOD)] = None,
    kernel: Annotated[str | None, choice_option(KERNELS.names(), "Binning kernel.", _METHOD)] = None,
    reconstruction: Annotated[
        str | None, choice_option((*RECONSTRUCTIONS.names(), "none"), "Reconstruction kernel; none: plain.", _METHOD)
    ] = None,
    score: Annotated[str | None, choice_option(SCORES.names(), "What is maximised.", _METHOD)] = None,
    solver: Annotated[str | None, choice_option(SOLVERS.names(), "Optimiser.", _METHOD)] = None,
    events_per_packet: Annotated[
        int | None, typer.Option(metavar="N", help="Number of events of a packet.", rich_help_panel=_METHOD)
    ] = None,
    compute: Compute = None,
    device: Device = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Output folder; by default velocity_NAME.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing velocity.csv.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the camera's velocity from packets of events, write velocity.csv and print the errors."""
    from cmaxslam_fbp.cli.progress import event_progress
    from cmaxslam_fbp.errors import OutputError
    from cmaxslam_fbp.events.filters import EventFilter
    from cmaxslam_fbp.frontend import VelocityEstimator
    from cmaxslam_fbp.io.trajectory_files import write_velocities

    flags = {
        "frontend.model": model,
        "frontend.kernel": kernel,
        "frontend.reconstruction": reconstruction,
        "frontend.score": score,
        "frontend.solver": solver,
        "frontend.events_per_packet": events_per_packet,
        "frontend.compute": compute,
        "frontend.device": device,
    }
    settings = source.configure(flags)
    recording = open_configured(path, settings)
    table = (out or Path(f"velocity_{path.resolve().name.split('.')[0]}")) / "velocity.csv"
    if table.exists() and not overwrite:
        raise OutputError(f"{table} exists already; choose another folder with --out, or give --overwrite")
    camera = recording.require_camera()
    estimator = VelocityEstimator(camera, settings.frontend)
    stream = recording.chunks(source.start, source.duration)
    estimates: list[VelocityEstimate] = []
    interrupted = False
    with event_progress("estimating", quiet=quiet or as_json, total_s=source.duration) as progress:

        def watched() -> Iterator[Events]:
            for events in stream:
                progress(events)
                yield events

        try:
            events_filter = EventFilter(settings.events, recording.sensor_size, camera.seen_pixels())
            for estimate in estimator.run(events_filter.run(watched(), stream.defects)):
                estimates.append(estimate)
        except KeyboardInterrupt:
            interrupted = True
    write_velocities(table, estimates, estimator.model.parameters)
    warn(*stream.defects.describe(), *recording.check_reference())
    summary = _summarise(recording, estimates, estimator) | {"table": str(table)}
    if as_json:
        typer.echo(json.dumps(summary, indent=2, allow_nan=False))
    else:
        _print(summary)
    if interrupted:
        typer.echo(f"interrupted: {table} holds the first {len(estimates):,} velocities", err=True)
        raise typer.Exit(130)


def _summarise(recording: Recording, estimates: list[VelocityEstimate], estimator: VelocityEstimator) -> dict[str, Any]:
    """Return the figures of a run as plain values."""
    import numpy as np

    summary: dict[str, Any] = {"packets": len(estimates)}
    if not estimates:
        return summary
    summary["events_per_packet"] = estimator.config.events_per_packet
    summary["statuses"] = dict(Counter(estimate.status.value for estimate in estimates).most_common())
    summary["evaluations_per_packet"] = sum(estimate.evaluations for estimate in estimates) / len(estimates)
    summary["ms_per_packet"] = 1e3 * sum(estimate.seconds for estimate in estimates) / len(estimates)
    t_ns, first = np.unique(np.array([estimate.t_ns for estimate in estimates], np.int64), return_index=True)
    velocities = np.array([estimates[k].velocity for k in first])
    if estimator.model.kind == "angular":
        summary |= _angular_errors(recording, t_ns, velocities)
    elif estimator.model.kind == "linear":
        summary |= _linear_errors(recording, t_ns, velocities)
    return summary


def _angular_errors(recording: Recording, t_ns: IntArray, velocities: FloatArray) -> dict[str, Any]:
    """Compare with the gyroscope, or else with the reference poses; nothing where there is neither."""
    from cmaxslam_fbp.errors import TrajectoryError
    from cmaxslam_fbp.evaluation import angular_velocity_errors
    from cmaxslam_fbp.trajectory import AngularVelocities

    reference = recording.gyroscope or recording.ground_truth
    if reference is None:
        return {}
    try:
        errors = angular_velocity_errors(AngularVelocities(t_ns, velocities), reference)
    except TrajectoryError:
        return {}
    return {
        "reference": "gyroscope" if recording.gyroscope is not None else "ground truth",
        "compared": errors.count,
        "rms_deg_s": errors.rms_deg_s,
        "rms_per_axis_deg_s": errors.rms_per_axis_deg_s,
        "axes_rms_deg_s": list(errors.axes_rms_deg_s),
    }


def _linear_errors(recording: Recording, t_ns: IntArray, velocities: FloatArray) -> dict[str, Any]:
    """Compare with the velocities of the reference poses; nothing where there are none."""
    from dataclasses import asdict

    from cmaxslam_fbp.evaluation.translation_errors import linear_velocity_errors

    poses = recording.ground_truth
    errors = None if poses is None else linear_velocity_errors(t_ns, velocities, poses)
    return {} if errors is None else {"reference": "ground truth"} | asdict(errors)


def _print(summary: dict[str, Any]) -> None:
    lines = [f"{summary['table']}: {summary['packets']:,} velocities"]
    if summary["packets"]:
        statuses = ", ".join(f"{count:,} {status}" for status, count in summary["statuses"].items())
        lines.append(f"status: {statuses}")
        lines.append(
            f"per packet: {summary['ms_per_packet']:.2f} ms, {summary['evaluations_per_packet']:.1f} evaluations"
        )
    if "rms_deg_s" in summary:
        x, y, z = summary["axes_rms_deg_s"]
        lines.append(
            f"RMS error against the {summary['reference']}: {summary['rms_per_axis_deg_s']:.3f} deg/s per axis "
            f"(x {x:.3f}, y {y:.3f}, z {z:.3f}), {summary['rms_deg_s']:.3f} deg/s of the vector"
        )
    if "rms_m_s" in summary:
        lines.append(
            f"RMS error against the {summary['reference']}: {summary['rms_per_axis_m_s']:.3f} m/s per axis, "
            f"{summary['rms_m_s']:.3f} m/s of the vector for a scene at 1 m; "
            f"{summary['rms_at_depth_m_s']:.3f} m/s at the best-fitting depth, {summary['depth_m']:.2f} m"
        )
    if "reference" not in summary:
        lines.append("no gyroscope and no reference poses to compare with")
    typer.echo("\n".join(lines))
