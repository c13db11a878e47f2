"""The study of cost: how long one call of the binning and of its derivatives takes, on every backend present."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import SingleArray
from cmaxslam_fbp.experiments.machine import best_us, calibration_us, cpu_name
from cmaxslam_fbp.experiments.paper_figures import COST_CPU_NAME, COST_CPU_US, COST_EVENTS, COST_GPU_NAME, COST_GPU_US
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.report.study_plots import plot_grouped_bars
from cmaxslam_fbp.rows.row import Row, Values

Case = tuple[str, Callable[[], object]]

SHAPE = (150, 200)
KERNELS = {"Rect": "rect", "Gauss": "gauss", "Linear": "linear"}
OVERHEADS = (("FuncGauss jvp", "Gauss jvp"), ("FuncLinear jvp", "Linear jvp"))
_SECONDS, _QUICK_SECONDS = 0.25, 0.02
_WORDS = (
    "Shortest time of one call in microseconds, float32 (reference: float64), 200 x 150 bins, uniform points, one "
    "thread; `Func`: by functional backpropagation. The paper times jvp only."
)


def run_cost(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    seconds = _QUICK_SECONDS if bench.settings.quick else _SECONDS
    counts = COST_EVENTS[:1] if bench.settings.quick else COST_EVENTS
    keys = [(backend, count) for backend in backends() for count in counts]
    rows = [
        Row(
            f"cost {backend} {count:,} events",
            measure_cost,
            {"backend": backend, "events": count, "seconds": seconds, "cpu": cpu_name()},
        )
        for backend, count in keys
    ]
    # Never beside other rows: these are times and nothing else.
    results = dict(zip(keys, bench.run(rows, one_at_a_time=True), strict=True))
    return _write(bench, results)


def backends() -> list[str]:
    """Return what can compute here."""
    found = ["numba", "reference"]
    if find_spec("torch") is not None:
        from cmaxslam_fbp.fbp.torch_module import torch

        found.append("torch cpu")
        if torch.cuda.is_available():
            found.append("torch cuda")
    return found


def measure_cost(settings: Mapping[str, Any], out: Path) -> Values:
    """Time all calls of a backend on so many events; with the machine's calibration before and after."""
    count, seconds = settings["events"], settings["seconds"]
    random = np.random.default_rng(count)
    points = (random.random((count, 2)) * (np.array(SHAPE) - 1e-4) - 0.5).astype(np.float32)
    tangents = random.normal(size=(count, 2)).astype(np.float32)
    cotangent = random.normal(size=SHAPE).astype(np.float32)
    name, _, device = settings["backend"].partition(" ")
    make = _torch_cases if name == "torch" else _array_cases
    before = calibration_us(count)
    times = {label: best_us(call, seconds) for label, call in make(points, tangents, cotangent, device or name)}
    device_name = cpu_name()
    if device == "cuda":
        from cmaxslam_fbp.fbp.torch_module import torch

        device_name = str(torch.cuda.get_device_name())
    return {"us": times, "bincount_us": min(before, calibration_us(count)), "device": device_name}


def _binnings(backend: str) -> Iterator[tuple[str, Binning, bool]]:
    """Yield name, binning and whether it has its own forward pass: FBP shares that of the plain binning."""
    for label, kernel in KERNELS.items():
        if kernel != "rect":
            yield label, Binning(SHAPE, kernel, None, backend=backend), True
        yield f"Func{label}", Binning(SHAPE, kernel, "linear", backend=backend), kernel == "rect"


def _array_cases(points: SingleArray, tangents: SingleArray, cotangent: SingleArray, backend: str) -> Iterator[Case]:
    kept: dict[str, Any] = {}
    frame, points_bar = np.empty(SHAPE, np.float32), np.empty_like(points)
    if backend == "numba":
        kept = {"forward": {"out": frame}, "vjp": {"out": (points_bar, None)}}
    for label, binning, has_forward in _binnings(backend):
        if has_forward:
            yield label.removeprefix("Func"), lambda b=binning: b(points, **kept.get("forward", {}))  # type: ignore[misc]
        yield f"{label} jvp", lambda b=binning: b.jvp(points, None, tangents, **kept.get("forward", {}))  # type: ignore[misc]
        yield f"{label} vjp", lambda b=binning: b.vjp(points, None, cotangent, **kept.get("vjp", {}))  # type: ignore[misc]


def _torch_cases(points: SingleArray, tangents: SingleArray, cotangent: SingleArray, device: str) -> Iterator[Case]:
    from cmaxslam_fbp.fbp.torch_module import torch

    torch.set_num_threads(1)
    x, x_dot, frame_bar = (torch.from_numpy(array).to(device) for array in (points, tangents, cotangent))

    def waited(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            result = call()
            if device != "cpu":
                torch.cuda.synchronize()
            return result

        return run

    for label, binning, has_forward in _binnings("torch"):
        if has_forward:
            yield label.removeprefix("Func"), waited(lambda b=binning: b(x))  # type: ignore[misc]
        yield f"{label} jvp", waited(lambda b=binning: b.jvp(x, None, x_dot))  # type: ignore[misc]
        yield f"{label} vjp", waited(lambda b=binning: b.vjp(x, None, frame_bar))  # type: ignore[misc]


def _write(bench: Workbench, results: Mapping[tuple[str, int], Values]) -> list[Path]:
    names = list(dict.fromkeys(backend for backend, _ in results))
    calls = list(next(iter(results.values()))["us"])
    head = ["call, events", *names, f"paper CPU ({COST_CPU_NAME})", f"paper GPU ({COST_GPU_NAME})"]
    body, records = [], []
    for k, count in enumerate(COST_EVENTS):
        if (names[0], count) not in results:
            continue
        calibrations = {name: results[name, count]["bincount_us"] for name in names}
        body.append([f"np.bincount, {count:,}", *(number(calibrations[name], 1) for name in names), "", ""])
        for call in calls:
            times = {name: results[name, count]["us"][call] for name in names}
            theirs = [table[call][k] if call in table else None for table in (COST_CPU_US, COST_GPU_US)]
            known = ["" if value is None else number(value, 1) for value in theirs]
            body.append([f"{call}, {count:,}", *(number(times[name], 1) for name in names), *known])
            for name in names:
                values = results[name, count]
                record = {"backend": name, "events": count, "call": call, "us": times[name]}
                record |= {"bincounts": times[name] / values["bincount_us"], "device": values["device"]}
                records.append(record | {"paper_cpu_us": theirs[0], "paper_gpu_us": theirs[1]})
        for func, plain in OVERHEADS:
            ratios = [results[name, count]["us"][func] / results[name, count]["us"][plain] for name in names]
            theirs = [table[func][k] / table[plain][k] for table in (COST_CPU_US, COST_GPU_US)]
            body.append([f"overhead {func}, {count:,}", *(f"{ratio:.2f} x" for ratio in (*ratios, *theirs))])
    devices = {name: results[name, COST_EVENTS[0]]["device"] for name in names}
    text = page("Cost", [_WORDS, markdown_table(head, body)], devices, list(results.values()))
    bars = {f"{name} ({devices[name]})": results[name, COST_EVENTS[0]]["us"] for name in names if name != "reference"}
    for where, table in ((COST_CPU_NAME, COST_CPU_US), (COST_GPU_NAME, COST_GPU_US)):
        bars[f"the paper ({where})"] = {name: times[0] for name, times in table.items()}
    return [
        bench.write("cost/cost.csv", csv_text(records)),
        bench.write("cost/cost.md", text),
        bench.write("cost/cost.png", plot_grouped_bars(bars, "time of a call [us]", "20,000 events, 200 x 150 bins")),
    ]
