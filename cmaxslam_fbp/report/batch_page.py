"""`index.html` of a batch: recordings by configurations, with maps, errors and speeds, and box plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Any
from urllib.parse import quote

from cmaxslam_fbp.report.html import as_script_json, data_uri, fill_template, html_card, html_tiles, read_resource
from cmaxslam_fbp.report.plots import plot_boxes

ERROR, SPEED = "metrics.absolute_best_fit_rms_deg", "run.real_time_factor"

_BOXES = {
    "absolute error, RMS [deg]": ERROR,
    "relative error over 1 s [deg/s]": "metrics.relative_rms_deg_s.1",
    "speed, of real time": SPEED,
}


@dataclass(frozen=True)
class PageCell:
    """A recording with a configuration, as the page shows it; addresses are relative to the page."""

    recording: str
    configuration: str
    repeat: str
    state: str
    error: str
    report: str
    picture: str
    figures: Mapping[str, float]


def batch_page(cells: Sequence[PageCell], version: str) -> str:
    """Return the page of runs that a version of the program has made."""
    failed = [cell for cell in cells if cell.state == "failed"]
    done = [cell for cell in cells if cell.state == "done"]
    level = "good" if len(done) == len(cells) else "bad" if not done else "fair"
    words = f"{len(done)} of {len(cells)} runs done" + (f", {len(failed)} failed" if failed else "")
    return fill_template(
        "batch.html",
        {
            "title": escape(f"{len(cells)} runs · cmaxslam-fbp"),
            "level": level,
            "words": escape(words),
            "size": escape(f"{len(_names(cells))} recordings by {len(_arms(cells))} configurations"),
            "tiles": _tiles(done),
            "choices": _choices(cells),
            "matrix": _matrix(cells),
            "plots": _plots(done, _arms(cells)),
            "version": escape(version),
            "script": read_resource("batch.js"),
            "data": as_script_json([_rounded(cell.figures) for cell in cells]),
        },
    )


def _names(cells: Sequence[PageCell]) -> list[str]:
    return list(dict.fromkeys(cell.recording for cell in cells))


def _arms(cells: Sequence[PageCell]) -> list[str]:
    return list(dict.fromkeys(cell.configuration for cell in cells))


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in figures.items()}


def _tiles(done: Sequence[PageCell]) -> str:
    def known(name: str) -> list[float]:
        return [cell.figures[name] for cell in done if name in cell.figures]

    tiles = []
    if errors := known(ERROR):
        tiles.append(
            ("Absolute error", f"{median(errors):.3f}°", f"median of {len(errors)} runs; largest {max(errors):.2f}°")
        )
    if speeds := known(SPEED):
        tiles.append(("Speed", f"{median(speeds):.2f}x", f"of real time, median; slowest {min(speeds):.2f}x"))
    if durations := known("run.duration_s"):
        events = sum(known("run.events")) / 1e6
        tiles.append(("Processed", f"{sum(durations):.0f} s", f"of recordings, {events:.1f} million events"))
    if walls := known("run.wall_s"):
        tiles.append(("Work", f"{sum(walls) / 60:.1f} min", "of runs, one after the other"))
    if memory := known("run.peak_memory_mb"):
        tiles.append(("Peak memory", f"{max(memory):.0f} MB", "of the largest run"))
    return html_tiles(tiles)


def _choices(cells: Sequence[PageCell]) -> str:
    """Return the figures that the matrix can show."""
    names = dict.fromkeys(name for cell in cells for name in cell.figures)
    return "".join(
        f'<option value="{escape(name)}"{" selected" if name == ERROR else ""}>'
        f"{escape(name.partition('.')[2].replace('_', ' '))}</option>"
        for name in names
    )


def _matrix(cells: Sequence[PageCell]) -> str:
    arms = _arms(cells)
    by_place: dict[tuple[str, str], list[tuple[int, PageCell]]] = {}
    for number, cell in enumerate(cells):
        by_place.setdefault((cell.recording, cell.configuration), []).append((number, cell))
    heads = "".join(f'<th scope="col">{escape(arm)}</th>' for arm in arms)
    rows = []
    for name in _names(cells):
        places = "".join(
            f"<td>{''.join(_run(number, cell) for number, cell in by_place.get((name, arm), []))}</td>" for arm in arms
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{places}</tr>')
    return f'<table class="matrix"><thead><tr><th></th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _run(number: int, cell: PageCell) -> str:
    """Return what stands for one run."""
    repeat = f'<span class="repeat">{escape(cell.repeat)}</span>' if cell.repeat else ""
    if cell.state != "done":
        return f'<div class="run {cell.state}">{repeat}<p>{escape(cell.error or "not done")}</p></div>'
    speed = f"{cell.figures[SPEED]:.2f}x" if SPEED in cell.figures else ""
    lost = cell.figures.get("run.windows_lost", 0)
    mark = f' <span class="lost">{lost:.0f} windows lost</span>' if lost else ""
    return (
        f'<a class="run" data-run="{number}" href="{quote(cell.report)}">'
        f'<span class="map"><img class="ink" loading="lazy" alt="" src="{quote(cell.picture)}"></span>'
        f'{repeat}<b class="figure">-</b><span class="speed">{speed}{mark}</span></a>'
    )


def _plots(done: Sequence[PageCell], arms: Sequence[str]) -> str:
    """Return the box plots of the figures over the recordings, where there are any."""
    groups: dict[str, dict[str, Any]] = {}
    for label, name in _BOXES.items():
        boxes = {arm: [c.figures[name] for c in done if c.configuration == arm and name in c.figures] for arm in arms}
        if any(boxes.values()):
            groups[label] = boxes
    if not groups:
        return ""
    picture = f'<img class="ink plot" alt="Box plots" src="{data_uri(plot_boxes(groups))}">'
    return html_card("Over all recordings", "a dot per run; box: quartiles and median", picture)
