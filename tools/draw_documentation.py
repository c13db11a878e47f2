"""Draw the pictures of docs/theory.md: the kernels, and the synthesized gradient beside differences of the score.

python tools/draw_documentation.py [--out docs/images]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import KERNELS
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.fbp.kappa import derivative_kernel
from cmaxslam_fbp.fbp.kernels import KernelFunction
from cmaxslam_fbp.fbp.reconstructions import l_linear
from cmaxslam_fbp.report.plots import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE = COLORS[:2]
INK, GREY, PALE = "#17212b", "#8a96a1", "#e2e7ec"
WIDTH_IN, DPI = 9.0, 150

SHAPE = (48, 72)
POINTS = 6000
SHORT, LONG = 0.01, 1.0  # half of what a difference spans, in bins
SHIFTS = np.linspace(-5, 5, 401)


def draw_kernels() -> Figure:
    """`k`, `l` and `kappa` above, `kappa'` below, one column per binning kernel."""
    figure = _figure(4.9)
    axes = figure.subplots(2, 3, sharex=True, sharey="row")
    x = np.linspace(-2.75, 2.75, 2201)
    for column, name in enumerate(KERNELS.names()):
        k, kappa = KERNELS[name], derivative_kernel(name, "linear")
        above, below = axes[:, column]
        above.plot(x, k.function(x, 0), color=ORANGE, linewidth=1.6, label="k: bins the points")
        above.plot(x, l_linear(x), color=GREY, linewidth=1.4, linestyle="--", label="l: reconstructs")
        above.plot(x, kappa.function(x, 0), color=BLUE, linewidth=2.2, label="κ = l * k")
        above.set_title(name, loc="left", fontsize=12, fontweight="bold", color=INK)
        below.plot(x, k.function(x, 1), color=ORANGE, linewidth=1.6, label="k', where it exists")
        _draw_jumps(below, k.function, k.radius)
        below.plot(x, kappa.function(x, 1), color=BLUE, linewidth=2.2, label="κ'")
        below.set_xlabel("distance from the bin's centre [bins]", fontsize=10, color=INK)
        below.set_xticks(range(-2, 3))
        for axis in (above, below):
            _tidy(axis)
    axes[0, 0].set_ylabel("kernels", fontsize=10, color=INK)
    axes[1, 0].set_ylabel("derivatives", fontsize=10, color=INK)
    axes[0, 0].set_ylim(-0.05, 1.4)
    axes[1, 0].set_ylim(-1.65, 1.65)
    for axis in (axes[0, 0], axes[1, 2]):
        axis.legend(loc="upper right", fontsize=8.5, frameon=False, borderaxespad=0.1, labelspacing=0.3, labelcolor=INK)
    return figure


def _draw_jumps(axis: Axes, function: KernelFunction, radius: float) -> None:
    """Where `k` jumps its derivative is a Dirac delta: an arrow as long as the jump."""
    for edge, sign in ((-radius, 1.0), (radius, -1.0)):
        height = sign * float(function(np.array([-radius]), 0)[0])
        if height:
            axis.plot([edge, edge], [0, height], color=ORANGE, linewidth=1.6)
            axis.plot(edge, height, color=ORANGE, marker="^" if sign > 0 else "v", markersize=6, zorder=5)
            offset = (-9 * sign, 2 if sign > 0 else -9)
            axis.annotate("δ", (edge, height), offset, textcoords="offset points", ha="center", color=ORANGE)


def draw_bias() -> Figure:
    """The score of a point set over a shifted copy of itself, and its slope by three ways of taking it."""
    figure = _figure(5.8)
    axes = figure.subplots(2, 2, sharex=True, height_ratios=(1, 1.5))
    for column, name in enumerate(("rect", "gauss")):
        above, below = axes[:, column]
        pair = ShiftedCopy(name)
        scale = 1 / pair.score(0.0)
        above.plot(SHIFTS, [scale * pair.score(shift) for shift in SHIFTS], color=INK, linewidth=1.3)
        above.set_title(name, loc="left", fontsize=12, fontweight="bold", color=INK)
        for half, style, label in (
            (SHORT, {"color": GREY, "linewidth": 0.6}, f"difference over ±{SHORT} bins"),
            (LONG, {"color": ORANGE, "linewidth": 5, "alpha": 0.4}, f"difference over ±{LONG:.0f} bin"),
        ):
            below.plot(SHIFTS, [scale * pair.difference(shift, half) for shift in SHIFTS], label=label, **style)
        plain = [0.0 if name == "rect" else scale * pair.slope(shift, None) for shift in SHIFTS]
        below.plot(SHIFTS, plain, color=INK, linewidth=1.3, linestyle="--", label="plain derivative of k")
        synthesized = [scale * pair.slope(shift, "linear") for shift in SHIFTS]
        long = np.array([scale * pair.difference(shift, LONG) for shift in SHIFTS])
        size = np.sqrt(np.mean(long**2))
        print(
            f"{name}: the synthesized slope differs from differences over {LONG:g} bin by "
            f"{100 * np.sqrt(np.mean((np.array(synthesized) - long) ** 2)) / size:.0f} % RMS; "
            f"the plain one has {100 * float(np.dot(plain, long) / np.dot(long, long)):.0f} % of their length"
        )
        below.plot(SHIFTS, synthesized, color=BLUE, linewidth=1.6, label="synthesized (FBP)")
        low, high = min(synthesized), max(synthesized)
        below.set_ylim(2 * low, 2 * high)
        below.set_xlabel("shift of the second set [bins]", fontsize=10, color=INK)
        for axis in (above, below):
            _tidy(axis)
    axes[0, 0].set_ylabel("score, relative", fontsize=10, color=INK)
    axes[1, 0].set_ylabel("slope [1/bin]", fontsize=10, color=INK)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False, labelcolor=INK)
    return figure


class ShiftedCopy:
    """Points along a few curves, and points along the same curves moved along x: they meet at shift zero."""

    def __init__(self, kernel: str) -> None:
        random = np.random.default_rng(4)
        self.kernel = kernel
        self.first, self.second = (self._curves(random) for _ in range(2))
        self.score_of = Variance()
        self.binning = {
            reconstruction: Binning(SHAPE, kernel, reconstruction)
            for reconstruction in (None, "linear")
            if kernel != "rect" or reconstruction is not None
        }

    @staticmethod
    def _curves(random: np.random.Generator) -> FloatArray:
        which = random.integers(0, 5, POINTS // 2)
        y = random.uniform(4, SHAPE[0] - 5, POINTS // 2)
        x = 14.3 + 10.7 * which + 3 * np.sin(0.13 * y + which) + random.normal(0, 0.9, POINTS // 2)
        return np.stack([y, x], -1)

    def points(self, shift: float) -> FloatArray:
        """Return the first set, and after it the shifted one."""
        return np.concatenate([self.first, self.second + np.array([0, shift])])

    def score(self, shift: float) -> float:
        """Return the variance of the frame."""
        return self.score_of.value(self.binning["linear"](self.points(shift)))

    def difference(self, shift: float, half: float) -> float:
        """Return the central difference of the score over twice `half` a range."""
        return (self.score(shift + half) - self.score(shift - half)) / (2 * half)

    def slope(self, shift: float, reconstruction: str | None) -> float:
        """Return the derivative along the shift, by reverse mode."""
        binning, points = self.binning[reconstruction], self.points(shift)
        points_bar, _ = binning.vjp(points, None, self.score_of.gradient(binning(points)))
        return float(points_bar[len(self.first) :, 1].sum())


def _figure(height_in: float) -> Figure:
    from matplotlib.figure import Figure  # without pyplot: drawn by Agg

    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained", facecolor="white")


def _tidy(axis: Axes) -> None:
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(PALE)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(visible=True, color=PALE, linewidth=0.7)
    axis.set_axisbelow(True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"), metavar="FOLDER")
    options = parser.parse_args()
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, draw in (("kernels.png", draw_kernels), ("bias.png", draw_bias)):
            draw().savefig(options.out / name, dpi=DPI, metadata={"Software": None})
            print(options.out / name)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
