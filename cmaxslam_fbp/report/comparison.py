"""Several runs side by side: a table, plots, a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.report.html import data_uri, fill_template, html_card
from cmaxslam_fbp.report.plots import Curve, Panel, plot_bars, plot_panels
from cmaxslam_fbp.report.run_files import RunFiles

if TYPE_CHECKING:
    from rich.table import Table

PAGE = "compare.html"
FILES = ("errors.png", "speed.png", "errors_over_time.png", PAGE)

# Figures by their labels: where they stand in the files of a run.
_ERRORS = {
    "absolute error, RMS [deg]": "metrics.absolute_best_fit_rms_deg",
    "absolute error, largest [deg]": "metrics.absolute_best_fit_max_deg",
    "relative error over 1 s [deg/s]": "metrics.relative_rms_deg_s.1",
    "angular velocity error, RMS [deg/s]": "metrics.angular_velocity_rms_deg_s",
    "Abs as CMax-SLAM prints it [deg]": "metrics.cmax_slam.abs_deg",
    "Rel as CMax-SLAM prints it [deg/s]": "metrics.cmax_slam.rel_deg_s",
}
_SPEED = {
    "real-time factor": "run.real_time_factor",
    "wall time [s]": "run.wall_s",
    "peak memory [MB]": "run.peak_memory_mb",
}
_OTHER = {
    "duration [s]": "run.duration_s",
    "events [million]": "run.events",
    "windows lost": "run.windows_lost",
    "event area [% of the map]": "run.event_area",
    "evaluations per window": "run.evaluations_per_window",
}
_IN_UNITS: dict[str, Callable[[float], float]] = {
    "events [million]": lambda count: count / 1e6,
    "event area [% of the map]": lambda share: 100 * share,
}


def read_runs(paths: Sequence[Path]) -> dict[str, RunFiles]:
    """Read run folders under their names; equal names are told apart by the folders that they lie in."""
    names = [path.resolve().name for path in paths]
    runs: dict[str, RunFiles] = {}
    for path, name in zip(paths, names, strict=True):
        label = name if names.count(name) == 1 else str(path)
        if label in runs:
            raise OutputError(f"{path} is given twice")
        runs[label] = RunFiles.read(path)
    return runs


def figures(runs: Mapping[str, RunFiles]) -> dict[str, dict[str, float | None]]:
    """Return each figure's label with its value for each run; None where it has none."""
    wanted = {**_ERRORS, **_SPEED, **_OTHER}
    return {label: {name: _figure(files, label, wanted[label]) for name, files in runs.items()} for label in wanted}


def _figure(files: RunFiles, label: str, place: str) -> float | None:
    value: Any = {"metrics": files.metrics, "run": {"events": 0, **files.run, "duration_s": files.duration_s}}
    for name in place.split("."):
        value = (value or {}).get(name)
    return value if value is None or label not in _IN_UNITS else _IN_UNITS[label](value)


def comparison_table(runs: Mapping[str, RunFiles]) -> Table:
    """Return a table with one row per figure and one column per run; the best error and speed of each row is bold."""
    from rich.markup import escape as escape_markup
    from rich.table import Table

    table = Table()
    table.add_column("")
    for name in runs:
        table.add_column(escape_markup(name), justify="right", overflow="fold")
    table.add_row("recording", *(escape_markup(files.name) for files in runs.values()))
    for label, values in figures(runs).items():
        table.add_row(escape_markup(label), *_cells(label, values, "[bold]{}[/]"))
    return table


def write_comparison(runs: Mapping[str, RunFiles], folder: Path) -> list[Path]:
    """Write `errors.png`, `speed.png`, `errors_over_time.png` and `compare.html`; return their paths."""
    table = figures(runs)
    plots = {"speed.png": plot_bars({label: table[label] for label in _SPEED})}
    if any(files.metrics for files in runs.values()):
        plots = {"errors.png": plot_bars({label: table[label] for label in _ERRORS}), **plots}
    curves = [
        Curve(name, errors["t_s"], errors["absolute_deg"], color)
        for color, (name, files) in enumerate(runs.items())
        if (errors := files.reference.get("errors"))
    ]
    if curves:
        plots["errors_over_time.png"] = plot_panels([Panel("absolute error [deg]", curves, from_zero=True)])
    written = [write_file(folder / name, data) for name, data in plots.items()]
    return [*written, write_file(folder / PAGE, _page(runs, table, plots))]


def _page(runs: Mapping[str, RunFiles], table: dict[str, dict[str, float | None]], plots: Mapping[str, bytes]) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in runs)
    rows = [_row("recording", [escape(files.name) for files in runs.values()])]
    for label, values in table.items():
        rows.append(_row(escape(label), _cells(label, values, "<b>{}</b>")))
    titles = {"errors.png": "Errors", "speed.png": "Speed", "errors_over_time.png": "Errors over time"}
    pictures = "".join(
        html_card(titles[name], "", f'<img class="ink plot" alt="{titles[name]}" src="{data_uri(data)}">')
        for name, data in plots.items()
    )
    parts = {
        "title": f"{len(runs)} runs · cmaxslam-fbp",
        "count": str(len(runs)),
        "table": f'<table class="grid"><tr><th></th>{heads}</tr>{"".join(rows)}</table>',
        "plots": pictures,
    }
    return fill_template("compare.html", parts)


def _row(label: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{label}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _cells(label: str, values: Mapping[str, float | None], bold: str) -> list[str]:
    """Return a figure of each run as text, the best one in bold."""
    best = _best(label, values)
    return [bold.format(_words(value)) if name == best else _words(value) for name, value in values.items()]


def _best(label: str, values: Mapping[str, Any]) -> str | None:
    """Return the run that is best in a figure: the smallest error, time and memory, the largest real-time factor."""
    known = {name: value for name, value in values.items() if value is not None}
    if label not in {**_ERRORS, **_SPEED} or len(known) < 2:
        return None
    return (max if label == "real-time factor" else min)(known, key=lambda name: known[name])


def _words(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
