"""Time the binning and its derivatives, beside what people use today.

The cases are those of the paper's section "Computational Complexity": 20,000, 50,000 and 100,000 events on a frame of
200 x 150 bins, in float32. Every time is the smallest of many repeats, in microseconds, and as a multiple of one
`np.bincount` of the same events with indices that are already there, taken in the same minute: the calibration.

    python tools/benchmark_binning.py [--json FILE] [--seconds S] [--dtype float64] [--events 20000 ...]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import MissingExtraError
from cmaxslam_fbp.experiments.machine import best_us
from cmaxslam_fbp.fbp import Binning

SHAPE = (150, 200)
# The paper's rows: the kernel, and the reconstruction or None for the plain derivative.
DERIVATIVES = (("rect", "linear"), ("linear", None), ("linear", "linear"), ("gauss", None), ("gauss", "linear"))
# One core: what may not be slower than so many calibrations, or than so many times another row.
TARGETS = (
    ("numba rect forward", None, 1.5),
    ("numba rect*linear vjp", None, 6.0),
    ("numba linear*linear vjp", None, 10.0),
    ("numba linear*linear jvp", "numba linear jvp", 2.2),
    ("numba linear*linear vjp", "numba linear vjp", 2.2),
)


class Points:
    """Uniform points over the whole grid, and tangents and cotangents to differentiate with."""

    def __init__(self, count: int, dtype: str) -> None:
        rng = np.random.default_rng(count)
        # Strictly inside: single precision would round some of them up to the far edge, which is outside.
        self.points = (rng.random((count, 2)) * (np.array(SHAPE) - 1e-4) - 0.5).astype(dtype)
        self.points_dot = rng.normal(size=(count, 2)).astype(dtype)
        self.frame_bar = rng.normal(size=SHAPE).astype(dtype)
        rows, columns = np.floor(self.points + 0.5).astype(np.int64).T
        self.rows, self.columns, self.flat = rows, columns, rows * SHAPE[1] + columns


def today(events: Points) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what people use: NumPy's histogram, unbuffered addition, and a Torch expression."""
    ranges = [(-0.5, n - 0.5) for n in SHAPE]
    yield (
        "np.histogram2d",
        lambda: np.histogram2d(events.points[:, 0], events.points[:, 1], bins=SHAPE, range=ranges),
    )

    def add_at() -> object:
        frame = np.zeros(SHAPE, events.points.dtype)
        index = np.floor(events.points + 0.5).astype(np.intp)
        np.add.at(frame, (index[:, 0], index[:, 1]), 1)
        return frame

    yield "np.add.at", add_at
    try:
        import torch
    except ModuleNotFoundError:
        return
    torch.set_num_threads(1)
    points = torch.from_numpy(events.points)
    ones = torch.ones(len(points), dtype=points.dtype)

    def index_add() -> object:
        index = torch.floor(points + 0.5).long()
        return torch.zeros(SHAPE[0] * SHAPE[1], dtype=points.dtype).index_add_(
            0, index[:, 0] * SHAPE[1] + index[:, 1], ones
        )

    yield "torch index_add_", index_add


def numba_cases(events: Points, threads: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the compiled backend, writing to arrays that are already there."""
    frame, points_bar = np.empty_like(events.frame_bar), np.empty_like(events.points)
    name = "numba" if threads == 1 else f"numba, {threads} threads,"
    for kernel in ("rect", "linear", "gauss"):
        binning = Binning(SHAPE, kernel, threads=threads)
        yield f"{name} {kernel} forward", lambda b=binning: b(events.points, out=frame)  # type: ignore[misc]
    for kernel, reconstruction in DERIVATIVES:
        b = Binning(SHAPE, kernel, reconstruction, threads=threads)
        label = f"{name} {kernel}" + (f"*{reconstruction}" if reconstruction else "")
        yield f"{label} jvp", lambda b=b: b.jvp(events.points, None, events.points_dot, out=frame)  # type: ignore[misc]
        yield (
            f"{label} vjp",
            lambda b=b: b.vjp(events.points, None, events.frame_bar, out=(points_bar, None)),  # type: ignore[misc]
        )


def torch_cases(events: Points, device: str, threads: int = 1) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the tensor backend."""
    import torch

    torch.set_num_threads(threads)
    name = f"torch {device}" if threads == 1 else f"torch {device}, {threads} threads,"
    points, points_dot = (torch.from_numpy(a).to(device) for a in (events.points, events.points_dot))
    frame_bar = torch.from_numpy(events.frame_bar).to(device)

    def timed(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            result = call()
            if device != "cpu":
                torch.cuda.synchronize()
            return result

        return run

    for kernel in ("rect", "linear", "gauss"):
        b = Binning(SHAPE, kernel, backend="torch")
        yield f"{name} {kernel} forward", timed(lambda b=b: b(points))  # type: ignore[misc]
    for kernel, reconstruction in DERIVATIVES:
        b = Binning(SHAPE, kernel, reconstruction, backend="torch")
        label = f"{name} {kernel}" + (f"*{reconstruction}" if reconstruction else "")
        yield f"{label} jvp", timed(lambda b=b: b.jvp(points, None, points_dot))  # type: ignore[misc]
        yield f"{label} vjp", timed(lambda b=b: b.vjp(points, None, frame_bar))  # type: ignore[misc]


def sample_cases(events: Points, count: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield gradients of the same events as samples of unequal length: in one call, filled up, and in a loop."""
    import torch

    torch.set_num_threads(1)
    binning = Binning(SHAPE, "rect", "linear", backend="torch")
    points, frame_bar = torch.from_numpy(events.points), torch.from_numpy(events.frame_bar)
    cuts = np.sort(np.random.default_rng(0).integers(0, len(points) + 1, count - 1))
    offsets = torch.tensor([0, *cuts, len(points)])
    lengths = offsets.diff()
    is_there = torch.arange(int(lengths.max())) < lengths[:, None]  # (samples, longest)
    filled = points.new_zeros((*is_there.shape, 2)).masked_scatter(is_there[..., None], points)

    def backward(leaf: torch.Tensor, frames: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], object]:
        leaf = leaf.requires_grad_()
        return lambda: torch.autograd.grad((frames(leaf) * frame_bar).sum(), leaf)

    name = f"torch cpu, {count} samples,"
    yield f"{name} offsets", backward(points, lambda x: binning(x, offsets=offsets))
    yield f"{name} filled up", backward(filled, lambda x: binning(x, is_there))
    pieces = [slice(first, last) for first, last in pairwise(offsets.tolist())]
    yield f"{name} loop", backward(points, lambda x: torch.stack([binning(x[piece]) for piece in pieces]))


def all_cases(events: Points) -> Iterator[tuple[str, Callable[[], object]]]:
    yield from today(events)
    yield from numba_cases(events, 1)
    yield from numba_cases(events, 2)
    try:
        yield from torch_cases(events, "cpu", 1)
        yield from torch_cases(events, "cpu", 2)
        yield from sample_cases(events, 8)
        yield from sample_cases(events, 64)
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return
    import torch

    if torch.cuda.is_available():
        yield from torch_cases(events, "cuda")


def measure(count: int, dtype: str, seconds: float) -> dict[str, dict[str, float]]:
    """Return the time and the multiple of the calibration of every case, and print them as they come."""
    events = Points(count, dtype)

    def bincount() -> object:
        return np.bincount(events.flat, minlength=SHAPE[0] * SHAPE[1])

    calibration = best_us(bincount, seconds)
    print(f"\n{count} events, {dtype}; calibration: np.bincount {calibration:.1f} us")
    rows = {"np.bincount": {"us": calibration, "calibrations": 1.0}}
    for name, call in all_cases(events):
        # The machine may be busier now than a second ago: calibrate beside every case.
        before, us, after = best_us(bincount, seconds / 5), best_us(call, seconds), best_us(bincount, seconds / 5)
        ratio = us / min(before, after)
        rows[name] = {"us": us, "calibrations": ratio}
        print(f"  {name:<42}{us:>10.1f} us{ratio:>9.2f} x")
    for name, other, limit in TARGETS:
        reached = rows[name]["calibrations"] / (rows[other]["calibrations"] if other else 1.0)
        verdict = "met" if reached <= limit else "MISSED"
        print(f"  target: {name} <= {limit} x {other or 'bincount'}: {reached:.2f} {verdict}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[20_000, 50_000, 100_000])
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long to repeat each case")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    results: dict[str, Any] = {"dtype": options.dtype, "shape": SHAPE, "numpy": np.__version__}
    results["events"] = {count: measure(count, options.dtype, options.seconds) for count in options.events}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
