"""The curves of a report, as plain values for its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.report.curves import NAMES, even_indices, yaw_pitch_roll_deg
from cmaxslam_fbp.report.run_files import RunFiles

Chart = dict[str, Any]

_AXES = [1, 0, 2]  # of yaw, pitch and roll: y is down, x to the right, z forward


def make_charts(files: RunFiles) -> list[Chart]:
    """Return the charts that the run has data for: title, unit, and series of times and values."""
    charts = [_orientation(files), _velocity(files), _errors(files), _deviations(files), *_windows(files)]
    return [chart for chart in charts if chart is not None]


def lost_ranges_s(files: RunFiles) -> list[list[float]]:
    """Return the time ranges, from and to, in which tracking was lost."""
    windows = files.windows
    if not windows:
        return []
    starts, ends = files.seconds(windows["start_s"]), files.seconds(windows["end_s"])
    lost = [tracking == "lost" for tracking in windows["tracking"]]
    return [[round(a, 4), round(b, 4)] for a, b, is_lost in zip(starts, ends, lost, strict=True) if is_lost]


def _orientation(files: RunFiles) -> Chart:
    chosen = even_indices(len(files.trajectory))
    times, angles = files.times_s[chosen], yaw_pitch_roll_deg(files.trajectory.rotations)[chosen]
    series = _bands(files) + _three(NAMES, times, angles, "estimate")
    truth = files.reference.get("ground_truth")
    if truth:
        true_angles = yaw_pitch_roll_deg(Rotation.from_quat(truth["quaternions_xyzw"]))
        # The whole turns of both curves are counted from the same pose.
        first = np.searchsorted(times, truth["t_s"][0]).clip(0, len(times) - 1)
        true_angles -= 360 * np.round((true_angles[0] - angles[first]) / 360)
        series = _three(NAMES, truth["t_s"], true_angles, "truth") + series
    note = (
        "yaw to the right, pitch up, roll clockwise"
        + (", with two standard deviations" * bool(files.deviations))
        + (", against ground truth in the best fit" if truth else "")
    )
    return {"id": "orientation", "title": "Orientation", "unit": "°", "note": note, "series": series}


def _velocity(files: RunFiles) -> Chart | None:
    table = files.velocities
    if not table:
        return None
    times = files.seconds(table["t_s"])
    chosen = even_indices(len(times))

    def columns(prefix: str) -> FloatArray:
        names = [f"{prefix}w{'xyz'[axis]}_rad_s" for axis in _AXES]
        return np.degrees(np.column_stack([table[name] for name in names]))[chosen]

    labels = [f"{name} {'xyz'[axis]}" for name, axis in zip(NAMES, _AXES, strict=True)]
    reference = files.reference.get("angular_velocity")
    series = []
    note = "body frame"
    if reference:
        series += _three(labels, reference["t_s"], np.degrees(reference["omega_rad_s"])[:, _AXES], "truth")
        note += f", against {'the ' if reference['source'] == 'gyroscope' else ''}{reference['source']}"
    series += _three(labels, times[chosen], columns(""), "estimate")
    series += _three(labels, times[chosen], columns("frontend_"), "frontend")
    return {"id": "velocity", "title": "Angular velocity", "unit": "°/s", "note": note, "series": series}


def _errors(files: RunFiles) -> Chart | None:
    errors = files.reference.get("errors")
    if not errors:
        return None
    series = [_series("error", errors["t_s"], errors["absolute_deg"], 0, "area")]
    note = "angle to the ground truth, after the rotation that fits best"
    if files.deviations:
        t_s, sigmas = _sigmas_deg(files)
        series.append(_series("expected", t_s, _or_none(np.linalg.norm(sigmas, axis=1)), 1, "line"))
        note += "; expected: from the standard deviations"
    return {"id": "error", "title": "Absolute error", "unit": "°", "note": note, "series": series, "zero": True}


def _deviations(files: RunFiles) -> Chart | None:
    if not files.deviations:
        return None
    t_s, sigmas = _sigmas_deg(files)
    labels = [f"{name} {'xyz'[axis]}" for name, axis in zip(NAMES, _AXES, strict=True)]
    series = [
        _series(name, t_s, _or_none(sigmas[:, axis]), n, "line")
        for n, (name, axis) in enumerate(zip(labels, _AXES, strict=True))
    ]
    note = "of the orientation about the axes of the camera; none where it is lost or still"
    return {"id": "deviation", "title": "Standard deviation", "unit": "°", "note": note, "series": series, "zero": True}


def _sigmas_deg(files: RunFiles) -> tuple[FloatArray, FloatArray]:
    """Return times and standard deviations (N, 3) about x, y and z, with a row of NaN in each longer break."""
    t_s = files.seconds(files.deviations["t_s"])
    sigmas = np.column_stack([files.deviations[f"sigma_{axis}_deg"] for axis in "xyz"])
    chosen = even_indices(len(t_s))
    t_s, sigmas = t_s[chosen], sigmas[chosen]
    steps = np.diff(t_s)
    breaks = np.flatnonzero(steps > 2.5 * np.median(steps)) + 1 if len(steps) else np.empty(0, np.intp)
    return np.insert(t_s, breaks, t_s[breaks] - 1e-3), np.insert(sigmas, breaks, np.nan, axis=0)


def _bands(files: RunFiles) -> list[dict[str, Any]]:
    """Return bands of two standard deviations around yaw, pitch and roll."""
    if not files.deviations:
        return []
    t_s, sigmas = _sigmas_deg(files)
    angles = yaw_pitch_roll_deg(files.trajectory.rotations)
    bands = []
    for n, (name, axis) in enumerate(zip(NAMES, _AXES, strict=True)):
        middle, half = np.interp(t_s, files.times_s, angles[:, n]), 2 * sigmas[:, axis]
        band = _series(name, t_s, _or_none(middle - half), n, "band")
        bands.append({**band, "w": _series(name, t_s, _or_none(middle + half), n, "band")["v"]})
    return bands


def _or_none(values: FloatArray) -> list[float | None]:
    """Return values, None for those that do not exist."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _windows(files: RunFiles) -> list[Chart]:
    windows = files.windows
    if not windows:
        return []
    starts, ends = files.seconds(windows["start_s"]), files.seconds(windows["end_s"])
    chosen = even_indices(len(starts))
    middles = ((starts + ends) / 2)[chosen]

    def column(name: str) -> list[float | None]:
        return _or_none(windows[name][chosen])

    rate = (windows["events"] / (ends - starts) / 1e6)[chosen]

    def chart(name: str, title: str, unit: str, note: str, values: Any, color: int, style: str) -> Chart:
        series = [_series(name, middles, values, color, style)]
        return {"id": name, "title": title, "unit": unit, "note": note, "series": series, "zero": True}

    contrast = chart("contrast", "Contrast", "", "score of each window over the map", column("score"), 0, "line")
    words = "correlation of each window with the map before it"
    match = chart("match", "Match", "", words, column("match"), 1, "line")
    events = chart("rate", "Event rate", "Mev/s", "events of each window behind the filters", rate, 2, "area")
    return [{**contrast, "half": True}, {**match, "half": True}, events]


def _three(names: Sequence[str], times: npt.ArrayLike, values: FloatArray, style: str) -> list[dict[str, Any]]:
    return [_series(name, times, values[:, axis], axis, style) for axis, name in enumerate(names)]


def _series(name: str, times: npt.ArrayLike, values: Any, color: int, style: str) -> dict[str, Any]:
    """Return a curve; values that do not exist are None."""
    return {
        "name": name,
        "style": style,
        "color": color,
        "t": np.round(np.asarray(times, np.float64), 4).tolist(),
        "v": [None if value is None else float(f"{value:.5g}") for value in values],
    }
