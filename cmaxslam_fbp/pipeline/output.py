"""The files of a run folder: each is one function of the finished run, and one line in `OUTPUTS`."""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp import __version__
from cmaxslam_fbp.arrays import Picture
from cmaxslam_fbp.config import Config, dump_config
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.trajectory_files import format_seconds, trajectory_lines
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.report.map_picture import draw_map, encode_png
from cmaxslam_fbp.report.packet_pictures import AFTER, BEFORE, draw_packet
from cmaxslam_fbp.report.page import REPORT, report_page
from cmaxslam_fbp.report.reference import describe_reference
from cmaxslam_fbp.report.run_files import REPORT_DATA, RunFiles
from cmaxslam_fbp.trajectory import AngularVelocities

_VELOCITY_COLUMNS = "t_s,wx_rad_s,wy_rad_s,wz_rad_s,frontend_wx_rad_s,frontend_wy_rad_s,frontend_wz_rad_s,status"
_WINDOW_COLUMNS = "start_s,end_s,events,tracking,score,match,evaluations,seconds"


@dataclass(frozen=True)
class FinishedRun:
    """What the files are made of: the result, what led to it, and the folder with the files so far."""

    folder: Path
    result: SlamResult
    config: Config
    recording: Recording
    command: list[str]

    @cached_property
    def packet(self) -> tuple[Picture | None, Picture | None, dict[str, Any] | None]:
        """A packet of events as it came and as the frontend's velocity warps it, with its figures; or nothing."""
        measured = [velocity for velocity in self.result.velocities if velocity.status.is_measured]
        frontend = AngularVelocities(
            np.array([velocity.t_ns for velocity in measured], np.int64),
            np.array([velocity.velocity for velocity in measured]).reshape(-1, 3),
        )
        trajectory, camera = self.result.trajectory(), self.recording.require_camera()
        return draw_packet(self.recording, camera, trajectory, frontend if measured else None) or (None, None, None)


Output = Callable[[FinishedRun], str | bytes | None]


def write_result(folder: Path, result: SlamResult, config: Config, recording: Recording, command: list[str]) -> None:
    """Write all files of a run; those that it has nothing for are removed where an earlier run left them."""
    run = FinishedRun(folder, result, config, recording, command)
    for name, content in OUTPUTS.items():
        data = content(run)
        if data is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_file(folder / name, data)


def _json(values: dict[str, Any] | None, indent: int | None = 2) -> str | None:
    return None if values is None else json.dumps(values, indent=indent, allow_nan=False) + "\n"


def _png(picture: Picture | None) -> bytes | None:
    return None if picture is None else encode_png(picture)


def _trajectory(run: FinishedRun) -> str:
    return "\n".join(["# t tx ty tz qx qy qz qw (world from camera)", *trajectory_lines(run.result.trajectory()), ""])


def _panorama(run: FinishedRun) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, run.result.panorama, allow_pickle=False)
    return buffer.getvalue()


def _report_data(run: FinishedRun) -> str | None:
    """Return what the report shows beside the results: the reference, the field of view, a packet of events."""
    result, source = run.result, run.recording
    values = describe_reference(
        result.trajectory(), result.start_ns, source.require_camera(), source.ground_truth, source.gyroscope
    )
    return _json({**values, "packet": run.packet[2]}, indent=None)


def _run_figures(run: FinishedRun) -> str | None:
    """Return what is known of the run itself."""
    result, timing = run.result, run.result.timing
    place, sha256 = run.recording.origin()
    return _json(
        {
            "version": __version__,
            "command": run.command,
            "input": place,
            "input_sha256": sha256,
            "events": result.events,
            "start_ns": result.start_ns,
            "end_ns": result.end_ns,
            "duration_s": result.duration_s,
            "event_rate_ev_s": result.events / result.duration_s if result.duration_s > 0 else 0.0,
            "wall_s": timing.wall_s,
            "real_time_factor": result.real_time_factor,
            "stages": {
                name: {"seconds": seconds, "real_time_factor": result.duration_s / seconds if seconds > 0 else None}
                for name, seconds in (
                    ("reading_and_frontend", timing.frontend_s),
                    ("backend", timing.backend_s),
                    ("refinement", timing.refinement_s),
                )
            },
            "windows": len(result.windows),
            "windows_lost": result.lost_windows,
            "evaluations_per_window": float(np.mean([w.evaluations for w in result.windows] or [0])),
            "refinement_turns_deg": result.refinements,
            "interrupted": result.interrupted,
            "peak_memory_mb": peak_memory_mb(),
            "warnings": result.warnings,
        }
    )


def peak_memory_mb() -> float:
    """Return the largest memory that this process has had.

    Linux tells it of the program itself; what `getrusage` tells includes the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


def _velocities(run: FinishedRun) -> str:
    """Return the refined angular velocity at the frontend's times, beside the frontend's own."""
    result, lines = run.result, [_VELOCITY_COLUMNS]
    inside = [v for v in result.velocities if result.spline.covers(v.t_ns) and v.t_ns <= result.end_ns]
    if inside:
        refined = result.spline.angular_velocities_at(np.array([v.t_ns for v in inside], np.int64))
        for velocity, omega in zip(inside, refined, strict=True):
            numbers = ",".join(f"{value:.9f}" for value in (*omega, *velocity.velocity))
            lines.append(f"{format_seconds(velocity.t_ns)},{numbers},{velocity.status.value}")
    return "\n".join([*lines, ""])


def _windows(run: FinishedRun) -> str:
    lines = [_WINDOW_COLUMNS]
    for w in run.result.windows:
        match = "" if w.match is None else f"{w.match:.6f}"
        lines.append(
            f"{format_seconds(w.start_ns)},{format_seconds(w.end_ns)},{w.events},{w.tracking.value},"
            f"{w.score:.9g},{match},{w.evaluations},{w.seconds:.6f}"
        )
    return "\n".join([*lines, ""])


# Every file by its name, in the order of writing; None for one that a run has nothing for.
OUTPUTS: dict[str, Output] = {
    "config.yaml": lambda run: dump_config(run.config),
    "trajectory.txt": _trajectory,
    "angular_velocity.csv": _velocities,
    "windows.csv": _windows,
    "panorama.npy": _panorama,
    "panorama.png": lambda run: _png(draw_map(run.result.panorama)),
    "run.json": _run_figures,
    "metrics.json": lambda run: _json(run.result.evaluation.to_dict() if run.result.evaluation else None),
    BEFORE: lambda run: _png(run.packet[0]),
    AFTER: lambda run: _png(run.packet[1]),
    REPORT_DATA: _report_data,
    REPORT: lambda run: report_page(RunFiles.read(run.folder)),
}
