"""Plots as PNG files: the only module that imports matplotlib. Nothing is shown on a screen."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#2563eb", "#d9500b", "#0b8a6a", "#9333ea", "#b45309", "#be185d", "#0e7490", "#4d7c0f")
_LONGEST_NAME = 50  # letters: beside a longer one there is no room for the plot
_WIDTH_IN, _PANEL_IN, _DPI = 9.0, 2.1, 150
_LOG_RANGE = 30.0
_INK, _MUTED, _GRID = "#17212b", "#5a6772", "#e2e7ec"


@dataclass(frozen=True, eq=False)
class Curve:
    """Values over seconds; a reference is drawn wide and pale, under the others."""

    name: str
    t_s: npt.ArrayLike
    values: npt.ArrayLike
    color: int = 0
    is_reference: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One plot of a figure."""

    label: str
    curves: Sequence[Curve] = field(default_factory=tuple)
    from_zero: bool = False


def plot_panels(panels: Sequence[Panel]) -> bytes:
    """Return a PNG with one plot below the other, over a common time axis."""
    figure = new_figure(len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        for curve in sorted(panel.curves, key=lambda one: not one.is_reference):
            style: dict[str, Any] = {"linewidth": 4.5, "alpha": 0.3} if curve.is_reference else {"linewidth": 1.3}
            axis.plot(
                curve.t_s, curve.values, color=COLORS[curve.color % len(COLORS)], label=_as_text(curve.name), **style
            )
        axis.set_ylabel(panel.label)
        if panel.from_zero:
            axis.set_ylim(bottom=0)
        if any(curve.name for curve in panel.curves):
            axis.legend(loc="upper right", ncols=4, fontsize=8, frameon=False)
        tidy(axis)
    axes[-1].set_xlabel("time [s]")
    return as_png(figure)


def plot_bars(groups: Mapping[str, Mapping[str, float | None]]) -> bytes:
    """Return a PNG with one plot per group: horizontal bars, named and with their values; None has no bar."""
    count = max((len(bars) for bars in groups.values()), default=1)
    figure = new_figure(len(groups), panel_in=0.7 + 0.32 * count)
    axes = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axis, (label, bars) in zip(axes, groups.items(), strict=True):
        values = [value or 0.0 for value in bars.values()]
        names = [_as_text(name) for name in bars]
        drawn = axis.barh(names, values, color=[COLORS[i % len(COLORS)] for i in range(len(bars))], height=0.62)
        words = ["-" if value is None else f"{value:.3g}" for value in bars.values()]
        axis.bar_label(drawn, words, padding=4, fontsize=8.5, color=_INK)
        axis.set_xlim(0, 1.14 * max([*values, 1e-9]))
        axis.invert_yaxis()
        axis.set_title(label, loc="left", fontsize=10, fontweight="bold")
        tidy(axis)
        axis.grid(visible=False, axis="y")
    return as_png(figure)


def plot_boxes(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> bytes:
    """Return a PNG with one plot per group: horizontal boxes over named values, with a dot for each value.

    A group whose values span more than a factor of thirty has a logarithmic axis.
    """
    count = max((len(boxes) for boxes in groups.values()), default=1)
    figure = new_figure(len(groups), panel_in=0.7 + 0.42 * count)
    axes = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axis, (label, boxes) in zip(axes, groups.items(), strict=True):
        places = range(len(boxes))
        for place, values in zip(places, boxes.values(), strict=True):
            axis.plot(values, [place] * len(values), "o", color=COLORS[place % len(COLORS)], alpha=0.55, markersize=4)
            if values:
                _draw_box(axis, place, np.asarray(values))
        axis.set_yticks(places, [_as_text(name) for name in boxes])
        axis.invert_yaxis()
        known = [value for values in boxes.values() for value in values]
        if min(known) > 0 and max(known) > _LOG_RANGE * min(known):
            axis.set_xscale("log")
        else:
            axis.set_xlim(left=0)
        axis.set_title(label, loc="left", fontsize=10, fontweight="bold")
        tidy(axis)
        axis.grid(visible=False, axis="y")
    return as_png(figure)


def _draw_box(axis: Axes, place: float, values: FloatArray) -> None:
    """Draw quartiles and median as a box, and whiskers to the outermost values within 1.5 times its length."""
    low, middle, high = np.percentile(values, (25, 50, 75))
    reach = 1.5 * (high - low)
    near = values[(values >= low - reach) & (values <= high + reach)]
    axis.barh(place, high - low, 0.5, left=low, fill=False, edgecolor=_MUTED)
    for start, end in ((near.min(), low), (high, near.max())):
        axis.plot([start, end], [place, place], color=_MUTED, linewidth=1.0)
    axis.plot([middle, middle], [place - 0.25, place + 0.25], color=_INK, linewidth=1.8)


def _as_text(name: str) -> str:
    """Return a name, of a folder say, as it is to be read: no formulas, no bytes that are no letters, not too long."""
    name = name if len(name) <= _LONGEST_NAME else f"{name[:30]} ... {name[-15:]}"
    return name.encode(errors="replace").decode().replace("$", r"\$")


def new_figure(panels: int, panel_in: float = _PANEL_IN) -> Figure:
    """Return an empty figure with room for so many plots below each other."""
    from matplotlib.figure import Figure  # without pyplot: a figure of its own, drawn by Agg

    return Figure(figsize=(_WIDTH_IN, 0.5 + panel_in * panels), layout="constrained")


def tidy(axis: Axes) -> None:
    """Give a plot the look of all others."""
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(_GRID)
    axis.tick_params(colors=_MUTED, labelsize=8.5)
    axis.yaxis.label.set(color=_INK, fontsize=9.5)
    axis.grid(visible=True, color=_GRID, linewidth=0.7)
    axis.set_axisbelow(True)


def as_png(figure: Figure) -> bytes:
    """Return a figure as a PNG."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()
