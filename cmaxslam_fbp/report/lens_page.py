"""The page of a calibration: field of view, parameters with their deviations, sharpness before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.report.html import data_uri, fill_template, html_card, html_table, html_tiles
from cmaxslam_fbp.report.map_picture import draw_map, encode_png


@dataclass(frozen=True)
class LensPicture:
    """What the page shows of a lens: its contrast, that over the image (rows, columns), and its map."""

    title: str
    contrast: float
    over_image: FloatArray
    map: SingleArray


def lens_page(name: str, figures: Mapping[str, Any], before: LensPicture, after: LensPicture) -> str:
    """Return the page of a recording's lens; figures are those that `calibrate --json` prints."""
    rows = figures["parameters"]
    held = [row["name"] for row in rows if not row["observed"]]
    level = "good" if not held else "bad" if len(held) == len(rows) else "fair"
    words = "All parameters observed" if not held else "Not observed: " + ", ".join(held)
    return fill_template(
        "lens.html",
        {
            "title": escape(f"Lens of {name} · cmaxslam-fbp"),
            "name": escape(name),
            "level": level,
            "words": "Nothing of the lens was observed" if level == "bad" else escape(words),
            "model": escape(str(figures["distortion_model"])),
            "tiles": _tiles(figures),
            "parameters": html_table([_parameter_row(row) for row in rows]) + _remark(figures["remark"]),
            "sharpness": _sharpness(before, after),
            "maps": "".join(_map(picture) for picture in (before, after)),
            "more": _scan(figures["scan"]) + _gyroscope(figures["imu_alignment"]),
        },
    )


def _tiles(figures: Mapping[str, Any]) -> str:
    across, down = figures["field_of_view_deg"]
    (fx, _, _), (_, fy, _), _ = figures["camera_matrix"]
    travel = figures["image_travel"]
    return html_tiles(
        [
            ("Field of view", f"{across:.1f}° x {down:.1f}°", "across and down the middle of the sensor"),
            ("Focal length", f"{fx:.2f} px", f"across; {fy:.2f} px down"),
            ("Contrast", f"{figures['contrast']:.3f}", f"{figures['contrast_before']:.3f} with the first lens"),
            (
                "Travel",
                f"{100 * travel['across']:.0f} % x {100 * travel['down']:.0f} %",
                "of the image over the sensor",
            ),
            ("Passages", f"{figures['passages']:,}", "of edges that the lens was adjusted to"),
        ]
    )


def _remark(text: str) -> str:
    return f"<p>{escape(text[0].upper() + text[1:])}.</p>" if text else ""


def _parameter_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    known = f"± {row['deviation']:.2g}" if row["observed"] else "not observed: held at what was expected"
    return row["name"], f"{row['value']:.6g}", known


def _sharpness(before: LensPicture, after: LensPicture) -> str:
    """Return both grids in one scale of colours, so that they can be compared."""
    both = [before.over_image, after.over_image]
    ends = float(np.nanmin(both)), float(np.nanmax(both))
    return "".join(
        f"<figure><figcaption>{escape(picture.title)}: {picture.contrast:.3f} in all</figcaption>"
        f"{_grid(picture.over_image, ends)}</figure>"
        for picture in (before, after)
    )


def _grid(values: FloatArray, ends: tuple[float, float]) -> str:
    lines = "".join(f"<tr>{''.join(_cell(value, ends) for value in row)}</tr>" for row in values)
    return f'<table class="parts">{lines}</table>'


def _cell(value: float, ends: tuple[float, float]) -> str:
    if not np.isfinite(value):
        return "<td></td>"
    share = (value - ends[0]) / max(ends[1] - ends[0], 1e-6)
    return f'<td style="background:rgb(37 99 235 / {0.05 + 0.6 * share:.2f})">{value:.2f}</td>'


def _map(picture: LensPicture) -> str:
    image = data_uri(encode_png(draw_map(picture.map), compression=6))
    title = escape(picture.title)
    return f'<figure><figcaption>{title}</figcaption><img class="ink" alt="{title}" src="{image}"></figure>'


def _scan(candidates: Sequence[Mapping[str, float]]) -> str:
    if not candidates:
        return ""
    rows = [
        (f"from {c['field_of_view_deg']:.0f}°", f"{c['fx']:.1f} px", f"contrast {c['contrast']:.3f}")
        for c in candidates
    ]
    return html_card("Fields of view that were tried", "and what each led to", html_table(rows))


def _gyroscope(imu: Mapping[str, Any] | None) -> str:
    if imu is None:
        return ""
    rows = [
        (
            "Camera's rates across its axis over the gyroscope's",
            f"{imu['rate_ratio']:.4f} ± {imu['rate_ratio_deviation']:.2g}",
            "one where the focal length is right",
        ),
        ("Difference of the rates, RMS", f"{imu['rms_deg_s']:.2f} °/s", ""),
        ("Its clock is ahead by", f"{1e3 * imu['time_offset_s']:+.2f} ms", ""),
        ("Axes", "told" if imu["observed"] == "yes" else "not told: the camera turned about one axis", ""),
    ]
    return html_card("Gyroscope", "a check", html_table(rows))
