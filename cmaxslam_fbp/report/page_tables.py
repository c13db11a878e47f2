"""The words and figures of a report: verdict, key figures, error table, run information."""

from __future__ import annotations

import shlex
from typing import Any

from cmaxslam_fbp.report.run_files import RunFiles


def verdict(files: RunFiles) -> tuple[str, str]:
    """Return how the run went: `good`, `fair` or `bad`, and a few words."""
    run = files.run
    windows, lost = int(run.get("windows", 0)), int(run.get("windows_lost", 0))
    if run.get("state") == "failed":
        return "bad", f"Ended by an error: {run.get('reason', '')}"
    if run.get("tracking") == "not a rotation":
        return "bad", "Not a rotation"
    if windows and lost > windows / 2:
        return "bad", f"Tracking lost in {lost} of {windows} windows"
    if lost:
        return "fair", f"Tracking lost in {lost} of {windows} windows"
    if run.get("tracking") == "found again":
        return "fair", "Lost for a while, and found again"
    if run.get("tracking") == "still":
        return "fair", "Still: no evidence of a motion"
    if run.get("state") == "interrupted":
        return "fair", "Interrupted"
    if run.get("state") == "running":
        return "fair", "Still running, or killed"
    return "good", "Tracked throughout"


def key_figures(files: RunFiles) -> list[tuple[str, str, str]]:
    """Return label, figure and remark of what a reader wants to know first."""
    run, metrics = files.run, files.metrics
    figures = []
    if metrics:
        rms, largest = metrics["absolute_best_fit_rms_deg"], metrics["absolute_best_fit_max_deg"]
        figures.append(("Absolute error", f"{rms:.3f}°", f"RMS; largest {largest:.2f}°"))
        velocity, reference = metrics["angular_velocity_rms_deg_s"], metrics["angular_velocity_reference"]
        figures.append(("Velocity error", f"{velocity:.2f}°/s", f"RMS against {reference}"))
    if run.get("real_time_factor") and "wall_s" in run:
        figures.append(("Speed", f"{run['real_time_factor']:.2f}x", f"of real time; {run['wall_s']:.1f} s in all"))
    figures.append(("Recording", f"{files.duration_s:.2f} s", f"{run.get('events', 0) / 1e6:.2f} million events"))
    size, area = f"{files.panorama.shape[1]} x {files.panorama.shape[0]}", run.get("event_area")
    figures.append(("Map", size, "" if area is None else f"event area {100 * area:.2f} %"))
    return figures


def error_rows(metrics: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return label, figure and unit of the errors of `metrics.json`."""
    rows = [
        ("Absolute, best fit: RMS", metrics["absolute_best_fit_rms_deg"], "°"),
        ("Absolute, best fit: median", metrics["absolute_best_fit_median_deg"], "°"),
        ("Absolute, best fit: largest", metrics["absolute_best_fit_max_deg"], "°"),
        ("Absolute, first pose: RMS", metrics["absolute_first_pose_rms_deg"], "°"),
        ("Absolute, first pose: largest", metrics["absolute_first_pose_max_deg"], "°"),
    ]
    offset = metrics.get("time_offset_s")
    if offset is not None:
        rows += [
            ("Best time offset (positive: estimate lags)", 1e3 * offset, "ms"),
            ("Absolute at that offset: RMS", metrics.get("absolute_at_time_offset_rms_deg"), "°"),
        ]
    rows += [(f"Relative over {dt} s: RMS", value, "°/s") for dt, value in metrics["relative_rms_deg_s"].items()]
    reference = metrics["angular_velocity_reference"]
    rows += [
        (f"Angular velocity against {reference}: RMS", metrics["angular_velocity_rms_deg_s"], "°/s"),
        ("Angular velocity: RMS per axis", metrics["angular_velocity_rms_per_axis_deg_s"], "°/s"),
    ]
    published = metrics.get("cmax_slam") or {}
    for name, unit in (("abs", "deg"), ("rel", "deg_s")):
        floor = published.get(f"{name}_floor_{unit}")
        if published.get(f"{name}_{unit}") is not None and floor is not None:
            label = f"{name.capitalize()} as CMax-SLAM prints it (a perfect estimate has {floor:.3f})"
            rows.append((label, published[f"{name}_{unit}"], "°" if name == "abs" else "°/s"))
    return [(label, "-" if value is None else f"{value:.3f}", unit) for label, value, unit in rows]


def run_rows(files: RunFiles) -> list[tuple[str, str]]:
    """Return label and text of what is known of the run itself."""
    run = files.run
    rows = [("Recording", str(run.get("input", "")))]
    if run.get("input_sha256"):
        rows.append(("SHA-256", str(run["input_sha256"])))
    camera = files.reference.get("camera")
    if camera:
        rows.append(
            ("Sensor", f"{camera['width']} x {camera['height']} pixels, fx {camera['fx']:.1f}, fy {camera['fy']:.1f}")
        )
    rows.append(("Events", _event_words(run)))
    for name, stage in run.get("stages", {}).items():
        if stage["seconds"]:
            rows.append((name.replace("_", " ").capitalize(), f"{stage['seconds']:.2f} s"))
    if "tracking" in run:
        rows.append(("Tracking", f"{run['tracking']}: {run.get('tracking_reason', '')}"))
    if "unexplained_motion" in run:
        rows.append(("Motion that no rotation explains", f"{100 * run['unexplained_motion']:.1f} %"))
    if run.get("parallax_deg") is not None:
        model = "modelled" if files.positions is not None else "not modelled"
        parallax_deg = run["parallax_deg"]
        rows.append(("Parallax", f"about {parallax_deg:.1f}°, {model}" if parallax_deg else "none that shows"))
    if "windows" in run:
        evaluations = run.get("evaluations_per_window", 0.0)
        rows.append(("Windows", f"{run['windows']}, {evaluations:.1f} evaluations each"))
    if run.get("refinement_turns_deg"):
        rows.append(("Refinement turned by", ", ".join(f"{turn:.3f}°" for turn in run["refinement_turns_deg"])))
    if "peak_memory_mb" in run:
        rows.append(("Peak memory", f"{run['peak_memory_mb']:.0f} MB"))
    rows.append(("Version", f"cmaxslam-fbp {run.get('version', '')}"))
    return rows


def repeat_command(files: RunFiles) -> str:
    """Return the command that repeats the run, for a shell."""
    return shlex.join(map(str, files.run.get("command", [])))


def _event_words(run: dict[str, Any]) -> str:
    return f"{run.get('events', 0):,}, {run.get('event_rate_ev_s', 0.0) / 1e6:.2f} million per second"
