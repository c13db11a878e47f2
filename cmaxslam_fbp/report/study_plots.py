"""The plots of the studies: errors with times, distributions of a bias, pictures side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.report.plots import COLORS, as_png, new_figure, tidy

Lists = Mapping[str, Sequence[float | None]]

_LOG_RANGE = 30.0  # values that span more than this are drawn on a logarithmic axis
_BINS = 60
_SIGNS = (("G_fd > 0", 1, "#d9500b"), ("G_fd < 0", -1, "#2563eb"))


def plot_errors_and_times(
    panels: Mapping[str, tuple[Lists, Lists]], parts: Sequence[str], label: str, title: str
) -> bytes:
    """Return a PNG with one plot per panel: for each method a bar per part, and a line of the mean time.

    Parameters
    ----------
    panels : name to errors and times, each by method, in the order of the parts; None has no bar
    parts : what the bars of a method are
    label : of the errors
    title : of the figure
    """
    figure = new_figure(len(panels), panel_in=3.4)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (name, (errors, times)) in zip(axes, panels.items(), strict=True):
        places, width = np.arange(len(errors)), 0.8 / len(parts)
        for k, part in enumerate(parts):
            heights = [np.nan if row[k] is None else row[k] for row in errors.values()]
            shift = (k - (len(parts) - 1) / 2) * width
            axis.bar(places + shift, heights, width, color=COLORS[k], label=part)
        known = [value for row in errors.values() for value in row if value]
        if known and max(known) > _LOG_RANGE * min(known):
            axis.set_yscale("log")
        axis.set_ylabel(f"{name}: {label}")
        axis.set_xticks(places, [method.replace(", ", "\n") for method in errors], rotation=35, ha="right")
        tidy(axis)
        clock = axis.twinx()
        means = [_mean(row) for row in times.values()]
        clock.plot(places, means, "o-", color="#17212b", markersize=4, linewidth=1, label="mean time")
        clock.set_ylim(bottom=0)
        clock.set_ylabel("mean time [ms]")
        tidy(clock)
        clock.grid(visible=False)
        clock.spines["right"].set_visible(True)
    figure.legend(*_entries(axes[0], clock), loc="outside lower center", ncols=len(parts) + 1, frameon=False)
    figure.suptitle(title, fontsize=11)
    return as_png(figure)


def plot_grouped_bars(series: Mapping[str, Mapping[str, float | None]], label: str, title: str) -> bytes:
    """Return a PNG with bars on a logarithmic axis: one group per name, one bar in it per series; None has no bar."""
    names = list(dict.fromkeys(name for values in series.values() for name in values))
    places, width = np.arange(len(names)), 0.84 / len(series)
    figure = new_figure(1, panel_in=4.4)
    axis = figure.subplots()
    for k, (one, values) in enumerate(series.items()):
        known = [values.get(name) for name in names]
        shift = (k - (len(series) - 1) / 2) * width
        axis.bar(places + shift, [np.nan if v is None else v for v in known], width, color=COLORS[k], label=one)
    axis.set_yscale("log")
    axis.set_ylabel(label)
    axis.set_xticks(places, names, rotation=35, ha="right")
    tidy(axis)
    axis.grid(visible=False, axis="x")
    figure.legend(*_entries(axis), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(title, fontsize=11)
    return as_png(figure)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def _entries(*axes: Any) -> tuple[list[Any], list[str]]:
    handles, labels = zip(*(axis.get_legend_handles_labels() for axis in axes), strict=True)
    return [one for part in handles for one in part], [one for part in labels for one in part]


def plot_signed_distributions(
    grid: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]], label: str, title: str
) -> bytes:
    """Return a PNG with a grid of histograms, rows before columns, coloured by a sign.

    Parameters
    ----------
    grid : row to column to values (N,) and the numbers (N,) whose sign colours them
    label : of the values
    title : of the figure
    """
    columns = len(next(iter(grid.values())))
    figure = new_figure(len(grid), panel_in=2.0)
    axes = figure.subplots(len(grid), columns, squeeze=False, sharex="col")
    for row_axes, (row, cells) in zip(axes, grid.items(), strict=True):
        for axis, (column, (values, signs)) in zip(row_axes, cells.items(), strict=True):
            reach = max(float(np.percentile(np.abs(other[column][0]), 99)) for other in grid.values()) or 1.0
            bins = np.linspace(-reach, reach, _BINS + 1)
            parts = [np.clip(values[np.sign(signs) == sign], -reach, reach) for _, sign, _ in _SIGNS]
            names, _, colors = zip(*_SIGNS, strict=True)
            axis.hist(parts, bins, stacked=True, color=list(colors), label=list(names))
            axis.axvline(0, color="#17212b", linewidth=0.8)
            rms = float(np.sqrt(np.mean(values**2)))
            axis.set_title(f"{column}, {row}: RMS {rms:.3f}", fontsize=9)
            axis.set_yticks([])
            tidy(axis)
    for axis in axes[-1]:
        axis.set_xlabel(label, fontsize=9)
    figure.legend(*_entries(axes[0, 0]), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(title, fontsize=11)
    return as_png(figure)


def plot_learning_curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]]], title: str
) -> bytes:
    """Return a PNG with one plot per panel over steps: of each method a pale line per seed, and their mean.

    Parameters
    ----------
    panels : label to method to one curve per seed: steps, the same for all, and values
    title : of the figure
    """
    figure = new_figure(len(panels), panel_in=3.0)
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for axis, (label, methods) in zip(axes, panels.items(), strict=True):
        for k, (method, curves) in enumerate(methods.items()):
            for steps, values in curves:
                axis.plot(steps, values, color=COLORS[k], linewidth=0.8, alpha=0.35)
            axis.plot(curves[0][0], np.mean([values for _, values in curves], 0), color=COLORS[k], label=method)
        axis.set_ylabel(label)
        tidy(axis)
    axes[-1].set_xlabel("steps", fontsize=9)
    figure.legend(*_entries(axes[0]), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(title, fontsize=11)
    return as_png(figure)


def plot_pictures(grid: Mapping[str, Mapping[str, npt.NDArray[np.uint8] | None]], title: str) -> bytes:
    """Return a PNG with pictures side by side, grey or (h, w, 3): one row per key, each picture with its name above."""
    columns = max(len(row) for row in grid.values())
    shapes = [picture.shape[:2] for row in grid.values() for picture in row.values() if picture is not None]
    slenderness = max((height / width for height, width in shapes), default=0.5)
    figure = new_figure(len(grid), panel_in=0.25 + 9.0 * slenderness / columns)
    axes = figure.subplots(len(grid), columns, squeeze=False)
    for row_axes, (row, cells) in zip(axes, grid.items(), strict=True):
        for axis in row_axes:
            axis.set(xticks=[], yticks=[])
            for side in axis.spines.values():
                side.set_color("#c8d0d8")
        for axis in row_axes[len(cells) :]:
            axis.set_visible(False)
        for axis, (column, picture) in zip(row_axes, cells.items(), strict=False):
            axis.set_title(f"{row},\n{column}" if columns > 4 else f"{row}, {column}", fontsize=8)
            if picture is not None:
                axis.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="lanczos")
    figure.suptitle(title, fontsize=11)
    return as_png(figure)
