"""`cmaxslam-fbp run`: the main job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from cmaxslam_fbp.cli.options import (
    Compute,
    Device,
    OutputStyle,
    Quiet,
    RecordingOptions,
    RecordingPath,
    Refine,
    choice_option,
    open_configured,
    takes_recording,
    warn,
)
from cmaxslam_fbp.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from cmaxslam_fbp.cli.interruption import Interruption
    from cmaxslam_fbp.config import Config
    from cmaxslam_fbp.io import Recording
    from cmaxslam_fbp.pipeline import SlamResult
    from cmaxslam_fbp.pipeline.saving import RunSaver
    from cmaxslam_fbp.pipeline.step import OnStep, Step
    from cmaxslam_fbp.pipeline.streaming import TrajectoryStream
    from cmaxslam_fbp.report.map_video import MapVideo


@takes_recording
def run(
    path: RecordingPath,
    source: RecordingOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder of the run; default runs/NAME-TIME.")
    ] = None,
    refine: Refine = None,
    hand_held: Annotated[
        bool,
        typer.Option(
            "--hand-held", help="Explain the parallax of a camera that also moves: positions and scene distances."
        ),
    ] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Find the lens from the recording first, instead of a calibration.")
    ] = False,
    refine_lens: Annotated[
        bool, typer.Option("--refine-lens", help="Adjust the given calibration to the recording first.")
    ] = False,
    scale: Annotated[
        float | None,
        typer.Option(metavar="METRES", help="Mean distance of the scene: with --hand-held, positions in metres."),
    ] = None,
    compute: Compute = None,
    device: Device = None,
    video: Annotated[
        Path | None, typer.Option("--video", metavar="FILE.mp4", help="Write a video of the map as it grows.")
    ] = None,
    rerun: Annotated[
        Path | None,
        typer.Option("--rerun", metavar="FILE.rrd", help="Log the run for the Rerun viewer; needs the extra rerun."),
    ] = None,
    video_shows: Annotated[
        str, choice_option(("edges", "brightness"), "What the video is of: edges or brightness.", None)
    ] = "edges",
    no_intensity: Annotated[
        bool, typer.Option("--no-intensity", help="Leave out the brightness of the scene, which takes a while more.")
    ] = False,
    output_style: OutputStyle = "tum",
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Write the trajectory to the standard output, line by line, as it settles."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run, and the video.")] = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the orientation over time and a panoramic map from a recording; '-' reads a stream of events.

    Writes trajectory.txt (TUM), angular_velocity.csv, panorama.png and .npy (edges), intensity.png and .npy
    (brightness), report.html, run.json, config.yaml, and metrics.json where the recording has reference poses.
    """
    from cmaxslam_fbp.cli.interruption import Interruption
    from cmaxslam_fbp.cli.progress import slam_progress
    from cmaxslam_fbp.io.live.recording import LiveRecording
    from cmaxslam_fbp.io.run_folder import default_run_folder, run_folder
    from cmaxslam_fbp.io.trajectory_files import STYLES, write_style
    from cmaxslam_fbp.pipeline import Slam
    from cmaxslam_fbp.pipeline.output import OUTPUTS
    from cmaxslam_fbp.pipeline.painting import paint
    from cmaxslam_fbp.pipeline.rerun_steps import PACKET_S, RerunSteps
    from cmaxslam_fbp.pipeline.saving import RunSaver
    from cmaxslam_fbp.pipeline.streaming import TrajectoryStream
    from cmaxslam_fbp.pipeline.warm_up import compile_once
    from cmaxslam_fbp.report.map_video import MapVideo
    from cmaxslam_fbp.report.reference import field_of_view
    from cmaxslam_fbp.viewer.rerun_log import RerunLog

    flags: dict[str, Any] = {"backend.translation": "scene" if hand_held else None, "backend.scene_distance_m": scale}
    is_live = str(path) == "-"
    flags |= {"intensity.enabled": False if no_intensity else None}
    for stage in ("frontend", "backend"):
        flags |= {f"{stage}.compute": compute, f"{stage}.device": device}
    resolved = source.configure(flags)
    for file in filter(None, (video, rerun)):
        if file.exists() and not (overwrite and file.is_file()):
            raise OutputError(f"{file} exists already; choose another name, or give --overwrite")
    slam = Slam(resolved)
    if video is not None and video_shows == "brightness" and not resolved.intensity.enabled:
        raise OutputError("a video of the brightness needs the brightness: leave out --no-intensity")
    recording = LiveRecording(sys.stdin.fileno(), resolved.recording) if is_live else open_configured(path, resolved)
    if calibrate or refine_lens:
        recording = _calibrated(recording, resolved, source, refine_lens=refine_lens, quiet=quiet)
    recording.require_camera()
    slam.check(recording, refine=refine, start_s=source.start)
    if stream and (refine or resolved.backend.translation != "none"):
        raise ConfigError("--stream writes poses that do not change any more: leave out --refine and --hand-held")
    if is_live and not quiet:
        typer.echo("reading a stream: packet pictures and the input's SHA-256 are left out", err=True)
    place = out or default_run_folder(Path("stream") if is_live else path)
    files = set(OUTPUTS)
    files |= {file.name for file in filter(None, (video, rerun)) if file.parent.resolve() == place.resolve()}
    files |= {name for name, _ in STYLES.values()}
    with (
        run_folder(place, overwrite=overwrite, files=files) as folder,
        Interruption(_stopping(recording)) as interruption,
    ):
        saver = RunSaver(folder, resolved, recording, ["cmaxslam-fbp", *sys.argv[1:]])
        poses = TrajectoryStream(sys.stdout) if stream else None
        shown: RerunSteps | None = None
        ending: BaseException | None = None
        with ExitStack() as stack:
            try:
                compile_s = compile_once(resolved, recording.require_camera())
                if compile_s > 3 and not quiet:
                    typer.echo(f"compiled the kernels in {compile_s:.0f} s; they are kept for the next run", err=True)
                observers = [stack.enter_context(slam_progress(quiet=quiet, total_s=source.duration)), saver.on_step]
                if poses is not None:
                    observers.insert(0, partial(_pass_on, poses, interruption))
                if video is not None:
                    frames = stack.enter_context(MapVideo(video, field_of_view(recording.require_camera())))
                    observers.append(partial(_film, frames, video_shows))
                if rerun is not None:
                    log = stack.enter_context(RerunLog(rerun, recording.require_camera()))
                    shown = RerunSteps(log, recording.require_camera())
                    observers.append(shown.on_step)
                observers.append(lambda _: interruption.check())
                result = slam.run(
                    recording,
                    start_s=source.start,
                    duration_s=source.duration,
                    refine=refine,
                    on_step=partial(_tell, observers),
                    keep_events_s=PACKET_S if shown is not None else 0.0,
                )
                if shown is not None:
                    shown.finish(result)
                if resolved.intensity.enabled:  # of an interrupted run too: it takes a moment
                    ends = result.interrupted or interruption.cause
                    told = None if ends else partial(_tell, observers)
                    result = paint(result, recording.require_camera(), resolved, on_step=told)
            except (Exception, KeyboardInterrupt) as error:  # whatever it is: what there is, the video too, stays
                ending = error
            interruption.hold()
        if ending is not None:
            _break_off(saver, ending, interruption.cause, poses)
        if is_live and interruption.cause:  # the signal has ended the stream, and the run has come to its end
            result = replace(result, interrupted=True)
        if poses is not None:
            _finish(poses, result)
        problems = saver.finish(result, interruption.cause)
        write_style(folder, output_style, result.trajectory(), overwrite=True)
    warn(*result.warnings, *problems)
    if not quiet:
        _print(result, folder, to_stderr=stream)
    if result.interrupted:
        typer.echo(f"interrupted: the first {result.duration_s:.2f} s are in {folder}", err=True)
        raise typer.Exit(130)


def _calibrated(
    recording: Recording, config: Config, source: RecordingOptions, *, refine_lens: bool, quiet: bool
) -> Recording:
    """Return the recording with the lens that its events tell: found from nothing, or the given one adjusted."""
    from cmaxslam_fbp.cli.calibrate import print_calibration
    from cmaxslam_fbp.cli.progress import stage_progress
    from cmaxslam_fbp.pipeline import calibrating

    if str(recording.path) == "-":
        raise ConfigError("a stream is read once: find its lens in a recording, with `cmaxslam-fbp calibrate`")
    seconds = {"start_s": source.start, "duration_s": source.duration}
    with stage_progress(quiet=quiet) as on_stage:
        if refine_lens:
            found = calibrating.refine_calibration(recording, config, on_stage=on_stage, **seconds)
        else:
            found = calibrating.calibrate(recording, None, config, on_stage=on_stage, **seconds)
    lens = found.lens
    if not quiet:
        print_calibration(found, None)
    if refine_lens and lens.after.contrast <= lens.before.contrast:
        warn("the contrast did not gain: the given calibration stays")
        return recording
    return recording.with_camera(lens.camera)


def _tell(observers: list[OnStep], step: Step) -> None:
    """Report a step to each observer."""
    for observer in observers:
        observer(step)


def _stopping(recording: Recording) -> Callable[[], None]:
    """Return what ends a stream at a signal; nothing else needs to be ended."""
    return (lambda: None) if recording.live is None else recording.live.stop


def _pass_on(poses: TrajectoryStream, interruption: Interruption, step: Step) -> None:
    """Write the poses that have settled; where nobody reads them any more, the run ends."""
    try:
        poses.on_step(step)
    except BrokenPipeError:
        _give_up_output()
        interruption.stop("nobody reads the standard output any more")


def _finish(poses: TrajectoryStream, result: SlamResult) -> None:
    """Write the last poses, to whoever still reads them."""
    try:
        poses.finish(result)
    except BrokenPipeError:
        _give_up_output()


def _give_up_output() -> None:
    """Let what is still to be written go nowhere: the interpreter would complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _break_off(saver: RunSaver, error: BaseException, cause: str, poses: TrajectoryStream | None) -> NoReturn:
    """Keep what there is of a run that ended with an error, say so, and end the program with it."""
    from cmaxslam_fbp.pipeline.output import RunState

    is_interrupted = isinstance(error, KeyboardInterrupt)
    state = RunState.INTERRUPTED if is_interrupted else RunState.FAILED
    kept = saver.break_off(state, cause if is_interrupted else f"{type(error).__name__}: {error}")
    if kept is not None:
        if poses is not None:
            _finish(poses, kept)
        typer.echo(f"the first {kept.duration_s:.2f} s are in {saver.folder}", err=True)
    elif is_interrupted:
        typer.echo("interrupted before the first window was done: there is nothing to keep", err=True)
    if is_interrupted:
        raise typer.Exit(130)
    raise error


def _film(video: MapVideo, subject: str, step: Step) -> None:
    """Add a frame to a video; the refinement is not filmed."""
    if subject == "edges" and step.window is not None:
        video.add(step.panorama, step.R_wc, step.recording_s)
    if subject == "brightness" and step.brightness is not None:
        from cmaxslam_fbp.report.map_picture import draw_brightness

        picture = draw_brightness(step.brightness().log_intensity)[..., :3]
        video.add_picture(picture, step.R_wc, step.recording_s)


def _print(result: SlamResult, folder: Path, *, to_stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from cmaxslam_fbp.evaluation import evaluation_table
    from cmaxslam_fbp.pipeline.memory import peak_memory_mb

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("events", f"{result.events:,} in {result.duration_s:.2f} s")
    table.add_row("wall time", f"{result.timing.wall_s:.2f} s, {result.real_time_factor:.2f} of real time")
    table.add_row(
        "of that",
        f"reading and frontend {result.timing.frontend_s:.2f} s beside backend {result.timing.backend_s:.2f} s",
    )
    if result.refinements:
        turns = ", ".join(f"{turn:.3f}" for turn in result.refinements)
        table.add_row("refinement", f"{result.timing.refinement_s:.2f} s; windows turned by {turns} deg")
    if result.photometric_errors is not None:
        before, after = result.photometric_errors
        table.add_row("photometric", f"error {before:.4f} before, {after:.4f} after, in thresholds")
    if result.hand_held is not None:
        refined = f"refined in {result.timing.refinement_s:.2f} s" if result.timing.refinement_s else "not refined"
        table.add_row("hand-held", f"parallax {result.hand_held.parallax_deg:.2f} deg; {refined}")
    if result.live is not None and (latency := result.live.latency) is not None:
        table.add_row(
            "latency",
            f"{latency.median_s:.2f} s in the median, {latency.percentile_95_s:.2f} s at 95 %, "
            f"{latency.largest_s:.2f} s at most, from the arrival of an event to its pose",
        )
    if result.brightness is not None:
        table.add_row("brightness", f"{result.timing.painting_s:.2f} s")
    table.add_row("windows", f"{len(result.windows)}, tracking lost in {result.lost_windows}")
    table.add_row("peak memory", f"{peak_memory_mb():.0f} MB")
    table.add_row("results", str(folder))
    table.add_row("open", str(folder / "report.html"))
    Console(markup=False, stderr=to_stderr).print(table, highlight=False)
    if result.evaluation is not None:
        Console(stderr=to_stderr).print(evaluation_table(result.evaluation))
