"""The study of bias: synthesized and plain gradients against long finite differences, over a grid of velocities.

With the paper's 20,000 events of `dynamic_rotation` and the angular velocities of a grid over [-5, 5]^3 rad/s:

    G_fd = (S(w + h e) - S(w - h e)) / 2 h,   h = 1 rad/s,   bias = (G - G_fd) / RMS(G_fd),

the RMS over all velocities and axes of the same kernel and score. The paper's "step size of 1.0" is also the distance
of its grid, and it speaks of 1,331 evaluations of the score: so `h` is half of the distance between the two points.
Plain rect binning has the gradient zero almost everywhere, so its bias is `-G_fd / RMS(G_fd)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.finite_differences import FiniteDifferences
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet, mean_time_ns
from cmaxslam_fbp.experiments.methods import EVENTS_PER_PACKET, frontend_config
from cmaxslam_fbp.experiments.paper_figures import SCORES
from cmaxslam_fbp.experiments.sequences import StudySequence, open_sequence
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.frontend.motion_models import FirstOrderRotation
from cmaxslam_fbp.frontend.objectives import make_objective
from cmaxslam_fbp.frontend.packet_events import PacketLookup
from cmaxslam_fbp.frontend.warps import Grid, VelocityWarp
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.report.study_plots import plot_signed_distributions
from cmaxslam_fbp.rows.row import Row, Values

KERNELS = ("rect", "linear", "gauss")
GRADIENTS = ("plain", "FBP")
SEQUENCE = "dynamic_rotation"
REACH_RAD_S, STEP_RAD_S = 5.0, 1.0
SIMULATED_START_S = 0.7  # a simulated camera starts at rest


def run_bias(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    sequence, start_s = _data(bench)
    per_axis = 5 if bench.settings.quick else 11
    keys = [(score, kernel) for score in SCORES for kernel in KERNELS]
    rows = [
        Row(
            f"bias {score} {kernel}",
            measure_bias,
            {**sequence.described, "start_s": start_s, "score": score, "kernel": kernel, "per_axis": per_axis},
            sequence.places,
        )
        for score, kernel in keys
    ]
    results = dict(zip(keys, bench.run(rows), strict=True))
    return _write(bench, sequence, per_axis, results)


def _data(bench: Workbench) -> tuple[StudySequence, float]:
    """Return the recording and where in it the packet starts: the ECD's, a real slice, or a simulated one."""
    slice_path = bench.settings.real_file(f"slices/{SEQUENCE}")
    if bench.settings.ecd is None and slice_path is not None:
        identity = digest(slice_path)
        words = f"real: the first 20,000 events of a slice of the ECD's {SEQUENCE} (SHA-256 {identity[:12]}...)"
        return StudySequence(SEQUENCE, str(slice_path.resolve()), identity, words), 0.0
    (sequence,) = bench.sequences([SEQUENCE])
    return sequence, 0.0 if bench.settings.ecd is not None else SIMULATED_START_S


def measure_bias(settings: Mapping[str, Any], out: Path) -> Values:
    """Return finite differences and gradients, plain and by functional backpropagation, of a kernel and a score."""
    recording = open_sequence(settings, out)
    events = Events.empty()
    for chunk in recording.chunks(settings["start_s"]):
        events = Events.concatenate([events, chunk])
        if len(events) >= EVENTS_PER_PACKET:
            break
    events = events[:EVENTS_PER_PACKET]
    camera = recording.require_camera()
    packet = PacketLookup(camera)(Packet(events, mean_time_ns(events)))
    plain = {"kernel": settings["kernel"], "reconstruction": "none"}
    config = frontend_config(plain, settings["score"], "rotation")
    grid = Grid.configured(camera, config)
    value_of, func = (
        make_objective(grid.shape, frontend_config(method, settings["score"], "rotation"))
        for method in (plain, {"kernel": settings["kernel"]})
    )
    for objective in (value_of, func):
        objective.use(VelocityWarp(FirstOrderRotation(), grid, packet))
    differences = FiniteDifferences(value_of, STEP_RAD_S)
    velocities = velocity_grid(settings["per_axis"])
    finite = np.array([differences.value_and_gradient(w)[1] for w in velocities])
    gradients = {"FBP": np.array([func.value_and_gradient(w)[1] for w in velocities])}
    if settings["kernel"] == "rect":
        gradients["plain"] = np.zeros_like(finite)
    else:
        gradients["plain"] = np.array([value_of.value_and_gradient(w)[1] for w in velocities])
    return {
        "events": len(events),
        "duration_ms": 1e-6 * float(events.t_ns[-1] - events.t_ns[0]),
        "finite": _listed(finite),
        **{name: _listed(gradients[name]) for name in GRADIENTS},
    }


def velocity_grid(per_axis: int) -> FloatArray:
    """Return the angular velocities (per_axis^3, 3) of an even grid over [-5, 5]^3."""
    line = np.linspace(-REACH_RAD_S, REACH_RAD_S, per_axis)
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


def _listed(values: FloatArray) -> list[float]:
    return [float(f"{value:.7g}") for value in values.ravel()]


def bias_figures(finite: FloatArray, gradient: FloatArray) -> dict[str, float]:
    """Return mean, RMS, means by the sign of the finite difference, and the slope of the gradient over it.

    All but the slope are of the normalised bias `(G - G_fd) / RMS(G_fd)`; an unbiased gradient has the slope one.
    """
    bias = normalised_bias(finite, gradient)
    return {
        "mean": float(bias.mean()),
        "rms": float(np.sqrt((bias**2).mean())),
        "mean_where_positive": float(bias[finite > 0].mean()),
        "mean_where_negative": float(bias[finite < 0].mean()),
        "standard_deviation": float(bias.std()),
        "slope": float((gradient * finite).sum() / (finite**2).sum()),
        "correlation": float(np.corrcoef(finite, gradient)[0, 1]) if gradient.std() > 0 else 0.0,
    }


def normalised_bias(finite: FloatArray, gradient: FloatArray) -> FloatArray:
    """`(G - G_fd) / RMS(G_fd)`."""
    return (gradient - finite) / np.sqrt((finite**2).mean())


def _write(
    bench: Workbench, sequence: StudySequence, per_axis: int, results: Mapping[tuple[str, str], Values]
) -> list[Path]:
    records: list[dict[str, Any]] = []
    grids: dict[str, dict[str, dict[str, tuple[FloatArray, FloatArray]]]] = {}
    for (score, kernel), values in results.items():
        finite = np.array(values["finite"])
        for name in GRADIENTS:
            gradient = np.array(values[name])
            figures = bias_figures(finite, gradient)
            records.append({"score": score, "kernel": kernel, "gradient": name, **figures, "data": sequence.provenance})
            cells = grids.setdefault(score, {}).setdefault(name, {})
            cells[kernel] = normalised_bias(finite, gradient), finite
    columns = ["mean", "rms", "mean_where_positive", "mean_where_negative", "slope", "correlation"]
    head = ["score, kernel, gradient", "mean", "RMS", "mean, G_fd > 0", "mean, G_fd < 0", "slope", "correlation"]
    body = [
        [f"{one['score']} {one['kernel']}, {one['gradient']}", *(number(one[name], 3) for name in columns)]
        for one in records
    ]
    length_ms = next(iter(results.values()))["duration_ms"]
    parts = [
        f"Normalised bias `(G - G_fd) / RMS(G_fd)` of {3 * per_axis**3:,} gradients at {per_axis**3:,} angular "
        "velocities in [-5, 5]^3 rad/s; G_fd: central differences between w - 1 and w + 1 rad/s. 20,000 events, "
        f"{length_ms:.1f} ms, 200 x 150 bins of 0.01. The paper has a figure of these distributions, without numbers.",
        markdown_table(head, body),
    ]
    written = [
        bench.write("bias/bias.csv", csv_text(records)),
        bench.write("bias/bias.md", page("Bias", parts, {SEQUENCE: sequence.provenance}, list(results.values()))),
    ]
    for score, grid in grids.items():
        title = f"{score}: normalised bias against finite differences, {sequence.kind} {SEQUENCE}"
        picture = plot_signed_distributions(grid, "(G - G_fd) / RMS(G_fd)", title)
        written.append(bench.write(f"bias/bias_{score}.png", picture))
    return written
