"""`cmaxslam-fbp evaluate`: an estimated trajectory against the ground truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import (
    Assignments,
    ConfigNames,
    Json,
    OutputStyle,
    PosesTopic,
    RecordingOptions,
    choice_option,
    seconds_option,
    warn,
)


def evaluate(
    estimate: Annotated[Path, typer.Argument(metavar="EST", help="TUM file: t tx ty tz qx qy qz qw.")],
    ground_truth: Annotated[
        Path, typer.Argument(metavar="GT", help="TUM file or groundtruth.txt, or a recording with reference poses.")
    ],
    config: ConfigNames = None,
    assignments: Assignments = None,
    poses_topic: PosesTopic = None,
    start: Annotated[
        float | None,
        seconds_option("Compare from here, after the recording's first event or the first pose."),
    ] = None,
    duration: Annotated[float | None, seconds_option("Compare this long.")] = None,
    metric: Annotated[
        str,
        choice_option(
            ("all", "cmax-slam"), "All errors, or those that CMax-SLAM's paper prints, with their floor.", None
        ),
    ] = "all",
    align_at: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Where cmax-slam aligns: 1 on real recordings, 0.1 on synthetic ones."),
    ] = 1.0,
    output_style: OutputStyle = "tum",
    as_json: Json = False,
) -> None:
    """Print absolute and relative errors of a trajectory, and those of its angular velocity."""
    from cmaxslam_fbp.errors import TrajectoryError
    from cmaxslam_fbp.evaluation import evaluate as evaluate_trajectory
    from cmaxslam_fbp.evaluation import evaluation_table, published_table
    from cmaxslam_fbp.io.trajectory_files import read_trajectory, write_style

    origin_ns = gyroscope = None
    if ground_truth.suffix in {".txt", ".tum"} and not ground_truth.is_dir():
        poses = read_trajectory(ground_truth)
    else:
        recording = RecordingOptions(config, assignments, poses_topic=poses_topic).open(ground_truth)
        faults = recording.check_reference()
        if recording.ground_truth is None:
            raise TrajectoryError(
                "; ".join([f"{ground_truth} has no reference poses", *faults, "give a TUM file as GT"])
            )
        warn(*faults)
        poses, gyroscope, origin_ns = recording.ground_truth, recording.gyroscope, recording.start_ns
    estimated = read_trajectory(estimate)
    result = evaluate_trajectory(
        estimated,
        poses,
        start_s=start,
        duration_s=duration,
        origin_ns=origin_ns,
        reference_velocities=gyroscope,
        align_at_s=align_at,
    )
    if (written := write_style(estimate.parent, output_style, estimated)) is not None:
        typer.echo(f"the estimate is in {written}, too", err=True)
    figures = result.to_dict()
    table = None
    if metric == "cmax-slam":
        if result.cmax_slam is None:
            raise TrajectoryError(
                f"estimate and ground truth do not both cover {align_at:g} s after the start, where this metric aligns "
                "them; give an earlier time with --align-at"
            )
        figures, table = figures["cmax_slam"], published_table(result.cmax_slam)
    if as_json:
        typer.echo(json.dumps(figures, indent=2, allow_nan=False))
        return
    from rich.console import Console

    Console().print(table or evaluation_table(result))
