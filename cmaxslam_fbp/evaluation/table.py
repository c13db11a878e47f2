"""Evaluations as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cmaxslam_fbp.evaluation.cmax_slam_metric import CmaxSlamErrors
from cmaxslam_fbp.evaluation.evaluate import Evaluation

if TYPE_CHECKING:
    from rich.table import Table

_LONG_GAP_S = 0.1


def evaluation_table(evaluations: Evaluation | Mapping[str, Evaluation], *, title: str | None = None) -> Table:
    """Return a table with one row per figure and one column per evaluation.

    Parameters
    ----------
    evaluations : Evaluation or mapping of names to Evaluation
        One evaluation, or several side by side under their names.
    title : str, optional
        Stands above the table.
    """
    from rich.markup import escape
    from rich.table import Table

    columns = {"": evaluations} if isinstance(evaluations, Evaluation) else dict(evaluations)
    table = Table(title=title, show_header=list(columns) != [""], caption=_notes(columns), caption_justify="left")
    table.add_column("")
    for name in columns:
        table.add_column(escape(name), justify="right")
    rows = [_rows(evaluation) for evaluation in columns.values()]
    for label in rows[0] if rows else ():
        if label.startswith("position") and all(figures[label] == "-" for figures in rows):
            continue  # only a hand-held camera has positions
        table.add_row(escape(label), *(figures[label] for figures in rows))
    return table


def _rows(evaluation: Evaluation) -> dict[str, str]:
    """Return the labels and formatted figures of one column."""
    e = evaluation
    rows = {
        "compared [s]": f"{e.start_s:.2f} to {e.start_s + e.duration_s:.2f}",
        "poses": f"{e.poses}",
        "covered by ground truth": f"{100 * e.overlap_of_estimate:.1f} %",
        "share of ground truth": f"{100 * e.overlap_of_ground_truth:.1f} %",
        "absolute, best fit: RMS [deg]": _figure(e.absolute_best_fit_rms_deg),
        "absolute, best fit: median [deg]": _figure(e.absolute_best_fit_median_deg),
        "absolute, best fit: largest [deg]": _figure(e.absolute_best_fit_max_deg),
        "absolute, first pose: RMS [deg]": _figure(e.absolute_first_pose_rms_deg),
        "absolute, first pose: largest [deg]": _figure(e.absolute_first_pose_max_deg),
        "best time offset [ms]": "-" if e.time_offset_s is None else f"{1e3 * e.time_offset_s:+.2f}",
        "absolute at that offset: RMS [deg]": _figure(e.absolute_at_time_offset_rms_deg),
    }
    for dt, error in e.relative_rms_deg_s.items():
        mark = "*" if e.relative_interpolated[dt] and error is not None else ""
        rows[f"relative over {dt} s: RMS [deg/s]"] = _figure(error) + mark
    rows["angular velocity: RMS [deg/s]"] = _figure(e.angular_velocity_rms_deg_s)
    rows["angular velocity: RMS per axis [deg/s]"] = _figure(e.angular_velocity_rms_per_axis_deg_s)
    rows["position: RMS [cm]"] = _figure(None if e.position_rms_m is None else 100 * e.position_rms_m)
    rows["position of the reference: RMS [cm]"] = _figure(
        None if e.position_path_rms_m is None else 100 * e.position_path_rms_m
    )
    published = e.cmax_slam
    rows["as CMax-SLAM prints it: Abs [deg]"] = _figure(None if published is None else published.abs_deg)
    rows["  of a perfect estimate, by the low pass"] = _figure(None if published is None else published.abs_floor_deg)
    rows["as CMax-SLAM prints it: Rel [deg/s]"] = _figure(None if published is None else published.rel_deg_s)
    rows["  of a perfect estimate"] = _figure(None if published is None else published.rel_floor_deg_s)
    return rows


def published_table(errors: CmaxSlamErrors) -> Table:
    """Return a table of the errors as CMax-SLAM prints them, with their floor and without the low pass."""
    from rich.table import Table

    caption = "floor: what a perfect estimate has, since the ground truth goes through a low pass of 50 ms"
    title = f"aligned at {errors.align_at_s:g} s, {errors.duration_s:.1f} s compared"
    table = Table("", title=title, caption=caption, caption_justify="left")
    for name in ("as published", "floor", "without low pass"):
        table.add_column(name, justify="right")
    e = errors
    table.add_row("Abs [deg]", *map(_figure, (e.abs_deg, e.abs_floor_deg, e.abs_unfiltered_deg)))
    table.add_row("Rel [deg/s]", *map(_figure, (e.rel_deg_s, e.rel_floor_deg_s, e.rel_unfiltered_deg_s)))
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _notes(columns: Mapping[str, Evaluation]) -> str | None:
    """Return what a reader must know to read the figures right."""
    notes = []
    if any(any(e.relative_interpolated.values()) for e in columns.values()):
        notes.append("* shorter than the step between poses: measures the interpolated estimate")
    if any(e.time_offset_s is not None for e in columns.values()):
        notes.append("a positive offset means that the estimate lags the ground truth")
    if any(e.angular_velocity_reference == "gyroscope" for e in columns.values()):
        notes.append("angular velocity: against the gyroscope")
    gap_s = max((e.ground_truth_longest_gap_s for e in columns.values()), default=0.0)
    if gap_s > _LONG_GAP_S:
        notes.append(f"the ground truth has a gap of {gap_s:.2f} s, across which it is interpolated")
    return "\n".join(notes) or None
