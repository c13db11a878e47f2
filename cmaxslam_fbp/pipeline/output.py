"""The files of a run folder: each is one function of the run, and one line in `OUTPUTS`."""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp import __version__
from cmaxslam_fbp.arrays import FloatArray, Picture, SingleArray
from cmaxslam_fbp.config import Config, dump_config
from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.atomic_files import Contents, write_file
from cmaxslam_fbp.io.calibration import format_opencv_yaml
from cmaxslam_fbp.io.trajectory_files import format_seconds, trajectory_lines
from cmaxslam_fbp.pipeline.memory import peak_memory_mb
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.velocities import MEASURED, STATUSES
from cmaxslam_fbp.report.map_picture import draw_brightness, draw_distances, draw_map, encode_png
from cmaxslam_fbp.report.packet_pictures import AFTER, BEFORE, draw_packet
from cmaxslam_fbp.report.page import REPORT, report_page
from cmaxslam_fbp.report.reference import describe_reference
from cmaxslam_fbp.report.run_files import REPORT_DATA, RunFiles
from cmaxslam_fbp.trajectory import AngularVelocities

RUN = "run.json"
TRAJECTORY_COLUMNS = "# t tx ty tz qx qy qz qw (world from camera)"

_HOT_PIXELS_LISTED = 100  # in run.json: those with the most events
_VELOCITY_COLUMNS = "t_s,wx_rad_s,wy_rad_s,wz_rad_s,frontend_wx_rad_s,frontend_wy_rad_s,frontend_wz_rad_s,status"
_DEVIATION_COLUMNS = "t_s,sigma_x_deg,sigma_y_deg,sigma_z_deg"
_WINDOW_COLUMNS = "start_s,end_s,events,tracking,score,match,evaluations,seconds,reason"


class RunState(str, Enum):
    """How a run went."""

    RUNNING = "running"
    """It goes on, or its process was killed: the files are those of its last moments."""
    FINISHED = "finished"
    """It has come to the end of the recording."""
    INTERRUPTED = "interrupted"
    """Somebody has stopped it."""
    FAILED = "failed"
    """An error has ended it; the reason says which."""


@dataclass(frozen=True)
class Run:
    """What the files are made of: the result, what led to it, how it ended, and the folder with the files so far."""

    folder: Path
    result: SlamResult
    config: Config
    recording: Recording
    command: list[str]
    state: RunState = RunState.FINISHED
    reason: str = ""
    find_origin: Callable[[], tuple[str, str | None]] | None = None  # instead of the recording's own

    @cached_property
    def origin(self) -> tuple[str, str | None]:
        """Where the recording lies, and its SHA-256; which is left out until the end, or where it cannot be read."""
        if self.state is not RunState.RUNNING or self.recording.live is not None:
            with suppress(OSError):
                return (self.find_origin or self.recording.origin)()
        return str(self.recording.path.resolve()), None

    @cached_property
    def packet(self) -> tuple[Picture | None, Picture | None, dict[str, Any] | None]:
        """A packet of events as it came and as the frontend's velocity warps it, with its figures; or nothing."""
        if self.recording.live is not None:
            return None, None, None
        rows = self.result.velocities
        measured = rows[MEASURED[rows["status"]]]
        frontend = AngularVelocities(measured["t_ns"], measured["omega_rad_s"])
        trajectory, camera = self.result.trajectory(), self.recording.require_camera()
        drawn = draw_packet(self.recording, camera, trajectory, frontend if len(measured) else None)
        return drawn or (None, None, None)


Output = Callable[[Run], Contents | None]


@dataclass(frozen=True)
class TextTable:
    """A text file with one line per time: `lines` returns the times and lines of a result from a time on, or all."""

    header: str | Callable[[SlamResult], str]
    lines: Callable[[SlamResult, int | None], tuple[list[int], list[str]]]

    def __call__(self, run: Run) -> str:
        """Return the whole file."""
        return "\n".join([self.first_line(run.result), *self.lines(run.result, None)[1], ""])

    def first_line(self, result: SlamResult) -> str:
        """Return the header."""
        return self.header if isinstance(self.header, str) else self.header(result)


def write_outputs(run: Run, names: Iterable[str]) -> list[str]:
    """Write some of the files of a run; return what could not be made, one line each: it costs none of the others.

    A file that there is nothing for is removed where it was left earlier.
    """
    problems = []
    for name in names:
        try:
            data = OUTPUTS[name](run)
        except (CmaxSlamError, OSError) as error:
            problems.append(f"{name} is left out: {error}")
            data = None
        if data is None:
            (run.folder / name).unlink(missing_ok=True)
        else:
            write_file(run.folder / name, data)
    return problems


def _json(values: dict[str, Any] | None, indent: int | None = 2) -> str | None:
    return None if values is None else json.dumps(values, indent=indent, allow_nan=False) + "\n"


def _png(picture: Picture | None) -> bytes | None:
    return None if picture is None else encode_png(picture)


def _drawn(draw: Callable[[Any], Picture], values: FloatArray | SingleArray | None) -> bytes | None:
    return None if values is None else encode_png(draw(values))


def _npy(array: FloatArray | SingleArray | None) -> list[bytes | memoryview] | None:
    """Return header and data of an `.npy` file, without a copy."""
    if array is None:
        return None
    single, header = np.ascontiguousarray(array, np.float32), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(single))
    return [header.getvalue(), single.data.cast("B")]


def trajectory_header(result: SlamResult) -> str:
    """Return the comment above a trajectory: its columns, and the unit of positions where there are any."""
    if result.hand_held is None:
        return TRAJECTORY_COLUMNS
    unit = "metres" if result.scene_distance_m else "mean scene distances"
    return f"{TRAJECTORY_COLUMNS[:-1]}; positions in {unit} from the map's centre)"


def _trajectory(result: SlamResult, since_ns: int | None) -> tuple[list[int], list[str]]:
    trajectory = result.trajectory(since_ns)
    return trajectory.t_ns.tolist(), trajectory_lines(trajectory)


def _brightness(run: Run) -> SingleArray | None:
    return None if run.result.brightness is None else run.result.brightness.log_intensity


def _distances(run: Run) -> FloatArray | None:
    """Return the distances of the scene from the map's centre, in the unit of positions; NaN where nothing is seen."""
    found = run.result.hand_held
    if found is None:
        return None
    return np.where(found.seen > 0, (run.result.scene_distance_m or 1.0) / found.inverse, np.nan)


def _report_data(run: Run) -> str | None:
    """Return what the report shows beside the results: the reference, the field of view, a packet of events."""
    result, source = run.result, run.recording
    values = describe_reference(
        result.trajectory(), result.start_ns, source.require_camera(), source.ground_truth, source.gyroscope
    )
    return _json({**values, "packet": run.packet[2]}, indent=None)


def _run_figures(run: Run) -> str | None:
    """Return what is known of the run itself."""
    result, timing = run.result, run.result.timing
    place, sha256 = run.origin
    return _json(
        {
            "version": __version__,
            "state": run.state.value,
            "reason": run.reason,
            "command": run.command,
            "input": place,
            "input_sha256": sha256,
            "events": result.events,
            "start_ns": result.start_ns,
            "end_ns": result.end_ns,
            "duration_s": result.duration_s,
            "gaps_ns": result.gaps_ns,
            "event_rate_ev_s": result.events / result.tracked_s if result.tracked_s > 0 else 0.0,
            "wall_s": timing.wall_s,
            "real_time_factor": result.real_time_factor,
            "stages": {
                name: {
                    "seconds": seconds,
                    "busy_share": seconds / timing.wall_s,
                    "real_time_factor": result.tracked_s / seconds if seconds > 0 else None,
                }
                for name, seconds in (
                    ("reading_and_frontend", timing.frontend_s),
                    ("passages", timing.passages_s),
                    ("backend", timing.backend_s),
                    ("refinement", timing.refinement_s),
                    ("intensity", timing.painting_s),
                )
            },
            "tracking": result.trust[0].value,
            "tracking_reason": result.trust[1],
            "unexplained_motion": result.unexplained_motion,
            "windows": len(result.windows),
            "windows_by_tracking": dict(Counter(window.tracking.value for window in result.windows)),
            "windows_lost": result.lost_windows,
            "evaluations_per_window": float(np.mean([w.evaluations for w in result.windows] or [0])),
            "refinement_turns_deg": result.refinements,
            "photometric_errors": result.photometric_errors,
            "parallax_deg": result.parallax_deg,
            "scene_distance_m": result.scene_distance_m,
            "event_area": result.event_area,
            "threshold_ratio": None if result.brightness is None else result.brightness.threshold_ratio,
            "hot_pixels": {
                "count": len(result.hot_pixels.pixels),
                "events": result.hot_pixels.events,
                "x_y_events": result.hot_pixels.pixels[:_HOT_PIXELS_LISTED],
            },
            "lone_events": result.lone_events,
            "live": None if result.live is None else asdict(result.live),
            "peak_memory_mb": peak_memory_mb(),
            "warnings": result.warnings,
        }
    )


def _velocities(result: SlamResult, since_ns: int | None) -> tuple[list[int], list[str]]:
    """Return the refined angular velocity at the frontend's times, beside the frontend's own."""
    rows = result.velocities
    rows = rows[0 if since_ns is None else np.searchsorted(rows["t_ns"], since_ns) :]
    refined = result.angular_velocities_at(rows["t_ns"])
    known = np.isfinite(refined).all(axis=1)
    lines = []
    for row, omega in zip(rows[known], refined[known], strict=True):
        numbers = ",".join(f"{value:.9f}" for value in (*omega, *row["omega_rad_s"]))
        lines.append(f"{format_seconds(int(row['t_ns']))},{numbers},{STATUSES[row['status']].value}")
    return rows["t_ns"][known].tolist(), lines


def _windows(result: SlamResult, since_ns: int | None) -> tuple[list[int], list[str]]:
    windows = result.windows
    if since_ns is not None:
        windows = windows[bisect_left(windows, since_ns, key=lambda window: window.start_ns) :]
    lines = []
    for w in windows:
        match = "" if w.match is None else f"{w.match:.6f}"
        lines.append(
            f"{format_seconds(w.start_ns)},{format_seconds(w.end_ns)},{w.events},{w.tracking.value},"
            f"{w.score:.9g},{match},{w.evaluations},{w.seconds:.6f},{w.reason}"
        )
    return [w.start_ns for w in windows], lines


def _deviations(result: SlamResult, since_ns: int | None) -> tuple[list[int], list[str]]:
    """Return the standard deviations of the orientation in the middle of each window that is in the map."""
    times, lines = [], []
    for window in result.windows:
        t_ns = (window.start_ns + window.end_ns) // 2
        if window.covariance is None or (since_ns is not None and t_ns < since_ns):
            continue
        sigmas_deg = np.degrees(np.sqrt(np.diagonal(window.covariance)))
        times.append(t_ns)
        lines.append(f"{format_seconds(t_ns)},{','.join(f'{sigma:.6f}' for sigma in sigmas_deg)}")
    return times, lines


# The files that grow with a run.
TABLES = {
    "trajectory.txt": TextTable(trajectory_header, _trajectory),
    "trajectory_deviation.csv": TextTable(_DEVIATION_COLUMNS, _deviations),
    "angular_velocity.csv": TextTable(_VELOCITY_COLUMNS, _velocities),
    "windows.csv": TextTable(_WINDOW_COLUMNS, _windows),
}

# Every file by its name, in the order of writing; None for one that a run has nothing for.
OUTPUTS: dict[str, Output] = {
    "config.yaml": lambda run: dump_config(run.config),
    "camera.yaml": lambda run: format_opencv_yaml(run.recording.require_camera()),
    **TABLES,
    "panorama.npy": lambda run: _npy(run.result.panorama),
    "panorama.png": lambda run: _drawn(draw_map, run.result.panorama),
    "distance.npy": lambda run: _npy(_distances(run)),
    "distance.png": lambda run: _drawn(draw_distances, _distances(run)),
    "intensity.npy": lambda run: _npy(_brightness(run)),
    "intensity.png": lambda run: _drawn(draw_brightness, _brightness(run)),
    RUN: _run_figures,
    "metrics.json": lambda run: _json(run.result.evaluation.to_dict() if run.result.evaluation else None),
    BEFORE: lambda run: _png(run.packet[0]),
    AFTER: lambda run: _png(run.packet[1]),
    REPORT_DATA: _report_data,
    REPORT: lambda run: report_page(RunFiles.read(run.folder)),
}
