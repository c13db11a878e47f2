"""The part of a report about a hand-held camera: its path, the distances of its scene, the parallax."""

from __future__ import annotations

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.report.curves import even_indices
from cmaxslam_fbp.report.html import data_uri, html_card
from cmaxslam_fbp.report.run_files import RunFiles

_SIDE = 240  # pixels of a view of the path
_MARGIN = 12
_VIEWS = (("from behind: right and down", 0, 1), ("from above: right and forward", 0, 2))


def hand_held_section(files: RunFiles) -> str:
    """Return the section, or nothing for a run without translation."""
    parallax_deg, positions = files.run.get("parallax_deg"), files.positions
    if not isinstance(parallax_deg, float | int) or positions is None:
        return ""
    extent, metres = float(np.abs(positions - positions.mean(axis=0)).max()), files.run.get("scene_distance_m")
    unit = "m" if metres else "mean scene distances"
    words = f"parallax of about {parallax_deg:.2f}°; the camera moves within ± {extent:.3f} {unit}"
    chosen = positions[even_indices(len(positions))]
    shots = "".join(
        f"<figure><div>{_view(chosen, extent, across, along)}</div><figcaption>{name}</figcaption></figure>"
        for name, across, along in _VIEWS
    )
    picture = files.path / "distance.png"
    if picture.is_file():
        shots += (
            f'<figure><div><img alt="" style="max-width:100%" src="{data_uri(picture.read_bytes())}"></div>'
            "<figcaption>distances of the scene: near is red, far is blue</figcaption></figure>"
        )
    return html_card("Hand-held motion", words, f'<div class="pair">{shots}</div>')


def _view(positions: FloatArray, extent: float, across: int, along: int) -> str:
    """Return the path as a line in a square, the mean place in its middle; forward is up, down is down."""
    scale = (_SIDE / 2 - _MARGIN) / max(extent, 1e-9)
    centred = scale * (positions - positions.mean(axis=0))
    vertical = -centred[:, along] if along == 2 else centred[:, along]
    points = " ".join(
        f"{x:.1f},{y:.1f}" for x, y in zip(_SIDE / 2 + centred[:, across], _SIDE / 2 + vertical, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" width="{_SIDE}" height="{_SIDE}" role="img">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="0.8"/></svg>'
    )
