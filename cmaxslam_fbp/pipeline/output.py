"""Write the result of a run into its folder."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp import __version__
from cmaxslam_fbp.config import Config, dump_config
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.io.run_folder import RunFolder
from cmaxslam_fbp.io.trajectory_files import format_seconds, trajectory_lines
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.report.map_picture import draw_map
from cmaxslam_fbp.report.packet_pictures import AFTER, BEFORE, draw_packet
from cmaxslam_fbp.report.page import write_report
from cmaxslam_fbp.report.reference import describe_reference
from cmaxslam_fbp.report.run_files import REPORT_DATA
from cmaxslam_fbp.trajectory import AngularVelocities

_VELOCITY_COLUMNS = "t_s,wx_rad_s,wy_rad_s,wz_rad_s,frontend_wx_rad_s,frontend_wy_rad_s,frontend_wz_rad_s,status"
_WINDOW_COLUMNS = "start_s,end_s,events,tracking,score,match,evaluations,seconds"


def write_result(
    folder: RunFolder, result: SlamResult, config: Config, recording: Recording, command: list[str]
) -> None:
    """Write trajectory, velocities, windows, map, figures, configuration and the report of them all."""
    folder.write_text("config.yaml", dump_config(config))
    lines = ["# t tx ty tz qx qy qz qw (world from camera)", *trajectory_lines(result.trajectory())]
    folder.write_text("trajectory.txt", "\n".join(lines) + "\n")
    folder.write_text("angular_velocity.csv", "\n".join(_velocity_lines(result)) + "\n")
    folder.write_text("windows.csv", "\n".join(_window_lines(result)) + "\n")
    folder.write_array("panorama.npy", result.panorama)
    folder.write_image("panorama.png", draw_map(result.panorama))
    folder.write_json("run.json", run_figures(result, recording.path, command))
    if result.evaluation is not None:
        folder.write_json("metrics.json", result.evaluation.to_dict())
    _write_report_data(folder, result, recording)
    write_report(folder.path)


def _write_report_data(folder: RunFolder, result: SlamResult, source: Recording) -> None:
    """Write what the report shows beside the results: the reference, the field of view, a packet of events."""
    camera, trajectory = source.require_camera(), result.trajectory()
    values = describe_reference(trajectory, result.start_ns, camera, source.ground_truth, source.gyroscope)
    measured = [velocity for velocity in result.velocities if velocity.status.is_measured]
    frontend = AngularVelocities(
        np.array([velocity.t_ns for velocity in measured], np.int64),
        np.array([velocity.velocity for velocity in measured]).reshape(-1, 3),
    )
    packet = draw_packet(source, camera, trajectory, frontend if measured else None)
    if packet is not None:
        before, after, values["packet"] = packet
        folder.write_image(BEFORE, before)
        folder.write_image(AFTER, after)
    folder.write_text(REPORT_DATA, json.dumps(values, allow_nan=False) + "\n")


def run_figures(result: SlamResult, recording: Path, command: list[str]) -> dict[str, Any]:
    """Return what is known of the run itself, for JSON."""
    timing = result.timing
    return {
        "version": __version__,
        "command": command,
        "input": str(recording.resolve()),
        "input_sha256": digest(recording),
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
        "evaluations_per_window": float(np.mean([w.evaluations for w in result.windows])) if result.windows else 0.0,
        "refinement_turns_deg": result.refinements,
        "interrupted": result.interrupted,
        "peak_memory_mb": peak_memory_mb(),
        "warnings": result.warnings,
    }


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


def _velocity_lines(result: SlamResult) -> list[str]:
    """Return the refined angular velocity at the frontend's times, beside the frontend's own."""
    lines = [_VELOCITY_COLUMNS]
    inside = [v for v in result.velocities if result.spline.covers(v.t_ns) and v.t_ns <= result.end_ns]
    if not inside:
        return lines
    refined = result.spline.angular_velocities_at(np.array([v.t_ns for v in inside], np.int64))
    for velocity, omega in zip(inside, refined, strict=True):
        numbers = ",".join(f"{value:.9f}" for value in (*omega, *velocity.velocity))
        lines.append(f"{format_seconds(velocity.t_ns)},{numbers},{velocity.status.value}")
    return lines


def _window_lines(result: SlamResult) -> list[str]:
    lines = [_WINDOW_COLUMNS]
    for w in result.windows:
        match = "" if w.match is None else f"{w.match:.6f}"
        lines.append(
            f"{format_seconds(w.start_ns)},{format_seconds(w.end_ns)},{w.events},{w.tracking.value},"
            f"{w.score:.9g},{match},{w.evaluations},{w.seconds:.6f}"
        )
    return lines
