"""Tables and pictures of runs of the SLAM, with published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import Picture
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.report.study_plots import plot_pictures

METRIC = (
    "Abs and Rel as CMax-SLAM publishes them: aligned at {align_at_s:g} s, RMS angle in deg, and of relative rotations "
    "over 1 s in deg/s, at 50 Hz over the first 30 s, against a ground truth after a low pass of 50 ms; the floor is "
    "what a perfect estimate has by that filter, and 'unfiltered' is without it. Beside them Abs with the world's "
    "rotation from the best fit, unfiltered, and the event area: the share of the map's pixels that its events fill. "
    "CPU s is what a run takes of all cores, which other work on the machine hardly changes."
)
Published = Mapping[str, Mapping[str, tuple[float, float] | None]]  # Abs and Rel by method and scene; None: it fails
_COLUMNS = {
    "Abs": ("abs_deg", 2),
    "floor": ("abs_floor_deg", 2),
    "unfiltered": ("abs_unfiltered_deg", 3),
    "best fit": ("best_fit_deg", 3),
    "Rel": ("rel_deg_s", 2),
    "floor ": ("rel_floor_deg_s", 2),
    "unfiltered ": ("rel_unfiltered_deg_s", 3),
    "event area %": ("event_area_percent", 2),
    "real-time factor": ("real_time_factor", 2),
    "CPU s": ("cpu_s", 0),
}
_TOUCHED = 235  # where maps are darker than this, they have events


def errors_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return all errors, sequence by sequence and method by method."""
    rows = []
    for record in records:
        cells = [number(record.get(name), digits) for name, digits in _COLUMNS.values()]
        lost = f"{record['lost_windows']} of {record['windows']}"
        rows.append([f"{record['sequence']}, {record['method']}", *cells, lost])
    return markdown_table(["sequence, method", *_COLUMNS, "lost windows"], rows)


def published_table(published: Published, records: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return Abs / Rel by method and scene: those that are published, and below them ours of the records."""
    scenes = list(next(iter(published.values())))
    rows = [
        [
            f"{method}, published",
            *("fails" if pair is None else "{:g} / {:g}".format(*pair) for pair in by_scene.values()),
        ]
        for method, by_scene in published.items()
    ]
    ours: dict[str, dict[str, str]] = {}
    for record in records:
        pair = f"{number(record.get('abs_deg'))} / {number(record.get('rel_deg_s'))}"
        ours.setdefault(record["method"], {})[record["sequence"].partition("_")[0]] = pair
    rows += [[f"{method}, here", *(cells.get(scene, "") for scene in scenes)] for method, cells in ours.items()]
    return markdown_table(["Abs / Rel", *scenes], rows)


def write_study(
    bench: Workbench, name: str, title: str, parts: Sequence[str], records: Sequence[dict[str, Any]]
) -> list[Path]:
    """Write the CSV, the page and the picture of the maps of a study; return their paths."""
    pictures: dict[str, dict[str, Picture | None]] = {}
    for record in records:
        pictures.setdefault(record["sequence"], {})[record["method"]] = _read_map(bench.settings.out / record["map"])
    provenances = {record["sequence"]: record["data"] for record in records}
    kept = [{key: value for key, value in record.items() if key not in ("files", "map")} for record in records]
    return [
        bench.write(f"{name}/{name}.csv", csv_text(kept)),
        bench.write(f"{name}/{name}.md", page(title, parts, provenances, records)),
        bench.write(
            f"{name}/maps.png",
            plot_pictures({one: cut_maps(maps) for one, maps in pictures.items()}, "Maps of the sequences"),
        ),
    ]


def _read_map(path: Path) -> Picture | None:
    """Return a map that a row has written, in grey; None where it cannot be read."""
    import cv2

    picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    return None if picture is None else np.asarray(picture, np.uint8)


def cut_maps(pictures: Mapping[str, Picture | None]) -> dict[str, Picture | None]:
    """Cut maps of the whole sphere, of any sizes, to the part of it in which any of them has events."""
    parts = [part for picture in pictures.values() if picture is not None and (part := _touched(picture)) is not None]
    if not parts:
        return dict(pictures)
    (top, left), (bottom, right) = (
        np.min([low for low, _ in parts], axis=0),
        np.max([high for _, high in parts], axis=0),
    )
    return {
        method: picture
        if picture is None
        else picture[_pixels(top, bottom, picture.shape[0]), _pixels(left, right, picture.shape[1])]
        for method, picture in pictures.items()
    }


def _touched(picture: Picture) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the first and the last row and column with events, as shares of the map; None where there are none."""
    rows, columns = np.nonzero(picture < _TOUCHED)
    if not len(rows):
        return None
    height, width = picture.shape
    return (rows.min() / height, columns.min() / width), ((rows.max() + 1) / height, (columns.max() + 1) / width)


def _pixels(first: float, last: float, count: int) -> slice:
    return slice(round(first * count), max(round(last * count), round(first * count) + 1))
