"""`report.html`: one file that shows a run, with everything it needs inside it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.report.curves import even_indices
from cmaxslam_fbp.report.html import (
    as_script_json,
    data_uri,
    fill_template,
    html_card,
    html_table,
    html_tiles,
    read_resource,
)
from cmaxslam_fbp.report.map_picture import draw_brightness, draw_map, encode_png, used_part
from cmaxslam_fbp.report.page_charts import lost_ranges_s, make_charts
from cmaxslam_fbp.report.page_tables import error_rows, key_figures, repeat_command, run_rows, verdict
from cmaxslam_fbp.report.run_files import RunFiles

REPORT = "report.html"

_SCRIPTS = ("rotation.js", "view.js", "sphere.js", "flat_map.js", "chart.js", "main.js")
_MOST_PICTURE_BYTES = 1_500_000
_MOST_WIDTH = 4096  # the largest texture that every graphics card takes
_VIEW_SIDE = 240  # pixels of a view of the path
_VIEW_MARGIN = 12
_VIEWS = (("from behind: right and down", 0, 1), ("from above: right and forward", 0, 2))


def write_report(path: Path, warn: Callable[[str], object] = lambda line: None) -> Path:
    """Make the report of the run in a folder from the files there; return its path.

    `warn` gets a line for each file that is damaged and left out.
    """
    files = RunFiles.read(path)
    for line in files.faults:
        warn(line)
    return write_file(path / REPORT, report_page(files))


def report_page(files: RunFiles) -> str:
    """Return the page."""
    level, words = verdict(files)
    picture = _map_image(draw_map(files.panorama))
    return fill_template(
        "report.html",
        {
            "title": escape(f"{files.name} · cmaxslam-fbp"),
            "name": escape(files.name),
            "level": level,
            "verdict": escape(words),
            "warnings": "".join(
                f"<li>{escape(str(line))}</li>" for line in [*files.run.get("warnings", []), *files.faults]
            ),
            "tiles": html_tiles(key_figures(files)),
            "packet": _hand_held(files) + _packet(files),
            "errors": _errors(files),
            "run": html_table(run_rows(files)),
            "command": escape(repeat_command(files)),
            "panorama": picture,
            "brightness": _brightness(files),
            "script": "\n".join(read_resource(name) for name in _SCRIPTS),
            "data": as_script_json(_page_data(files)),
        },
    )


def _page_data(files: RunFiles) -> dict[str, Any]:
    chosen = even_indices(len(files.trajectory))
    border = files.field_of_view()
    height, width = files.panorama.shape
    return {
        "duration": files.duration_s,
        "times": np.round(files.times_s[chosen], 5).tolist(),
        "quaternions": np.round(files.trajectory.quaternions_xyzw[chosen], 6).reshape(-1).tolist(),
        "positions": _positions(files, chosen),
        "fieldOfView": [] if border is None else np.round(border, 5).tolist(),
        "map": {"width": width, "height": height, "used": _used_part(files.panorama)},
        "lost": lost_ranges_s(files),
        "charts": make_charts(files),
    }


def _positions(files: RunFiles, chosen: npt.NDArray[np.intp]) -> list[list[float]]:
    """Return where the camera was, with the mean scene distance as the sphere's radius; nothing of a rotation."""
    positions = files.positions
    if positions is None:
        return []
    return np.round(positions[chosen] / (files.run.get("scene_distance_m") or 1.0), 5).tolist()


def _used_part(panorama: SingleArray) -> list[float]:
    """Return left, top, right and bottom of the part of the map that has events, as fractions of its size."""
    height, width = panorama.shape
    left, top, right, bottom = used_part(panorama, margin=0)
    edges = left / width, top / height, right / width, bottom / height
    return [round(float(edge), 4) for edge in edges]


def _brightness(files: RunFiles) -> str:
    """Return the brightness of the scene as a hidden image, where the run has it."""
    if files.log_intensity is None:
        return ""
    return f'<img id="brightness-map" alt="" hidden src="{_map_image(draw_brightness(files.log_intensity))}">'


def _map_image(picture: npt.NDArray[np.uint8]) -> str:
    """Return the map as a PNG address, halved in size until it is small enough."""
    while True:
        height, width = picture.shape[:2]
        if width <= _MOST_WIDTH:
            encoded = encode_png(picture, compression=6)
            if len(encoded) <= _MOST_PICTURE_BYTES or width <= 512:
                return data_uri(encoded)
        picture = np.asarray(cv2.resize(picture, (width // 2, height // 2), interpolation=cv2.INTER_AREA), np.uint8)


def _errors(files: RunFiles) -> str:
    if not files.metrics and (files.path / "metrics.json").is_file():
        return '<p class="none">The errors cannot be read.</p>'
    if not files.metrics:
        return '<p class="none">The recording has no reference poses to compare with.</p>'
    return html_table(error_rows(files.metrics))


def _packet(files: RunFiles) -> str:
    """Return the pictures of one packet before and after the warp, where the folder has them."""
    figures = files.reference.get("packet")
    if figures is None or len(files.packet_pictures) < 2:
        return ""
    gain = figures["contrast_after"] / max(figures["contrast_before"], 1e-12)
    words = (
        f"{figures['events']:,} events of {1e3 * figures['duration_s']:.0f} ms at {figures['t_s']:.2f} s, "
        f"{figures['speed_deg_s']:.0f}°/s: the variance grows {gain:.1f} times"
    )
    shots = "".join(
        f'<figure><div><img class="ink" alt="" src="{data_uri(picture)}"></div><figcaption>{name}</figcaption></figure>'
        for name, picture in zip(
            ("As they came", "Warped by the frontend's velocity"), files.packet_pictures, strict=True
        )
    )
    return html_card("One packet of events", words, f'<div class="pair">{shots}</div>')


def _hand_held(files: RunFiles) -> str:
    """Return path, distances and parallax of a hand-held camera, or nothing for a run without translation."""
    parallax_deg, positions = files.run.get("parallax_deg"), files.positions
    if not isinstance(parallax_deg, float | int) or positions is None:
        return ""
    extent, metres = float(np.abs(positions - positions.mean(axis=0)).max()), files.run.get("scene_distance_m")
    unit = "m" if metres else "mean scene distances"
    words = f"parallax of about {parallax_deg:.2f}°; the camera moves within ± {extent:.3f} {unit}"
    chosen = positions[even_indices(len(positions))]
    shots = "".join(
        f"<figure><div>{_path_view(chosen, extent, across, along)}</div><figcaption>{name}</figcaption></figure>"
        for name, across, along in _VIEWS
    )
    picture = files.path / "distance.png"
    if picture.is_file():
        shots += (
            f'<figure><div><img alt="" style="max-width:100%" src="{data_uri(picture.read_bytes())}"></div>'
            "<figcaption>distances of the scene: near is red, far is blue</figcaption></figure>"
        )
    return html_card("Hand-held motion", words, f'<div class="pair">{shots}</div>')


def _path_view(positions: FloatArray, extent: float, across: int, along: int) -> str:
    """Return the path as a line in a square, the mean place in its middle; forward is up, down is down."""
    scale = (_VIEW_SIDE / 2 - _VIEW_MARGIN) / max(extent, 1e-9)
    centred = scale * (positions - positions.mean(axis=0))
    vertical = -centred[:, along] if along == 2 else centred[:, along]
    points = " ".join(
        f"{x:.1f},{y:.1f}" for x, y in zip(_VIEW_SIDE / 2 + centred[:, across], _VIEW_SIDE / 2 + vertical, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {_VIEW_SIDE} {_VIEW_SIDE}" width="{_VIEW_SIDE}" height="{_VIEW_SIDE}" role="img">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="0.8"/></svg>'
    )
