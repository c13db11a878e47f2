"""The study of flow: networks that learn it from events alone, by each way through the binning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.experiments.flow.sample_sets import SampleSet, dsec_sets, simulated_sets
from cmaxslam_fbp.experiments.paper_figures import FLOW, FLOW_SEQUENCES
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.report.study_plots import plot_learning_curves, plot_pictures
from cmaxslam_fbp.rows.row import Row, Values

SEEDS = (0, 1, 2)
QUICK_ARMS = ("linear, plain", "linear, FBP", "rect, FBP")
PAIRS = (("linear, FBP", "linear, plain"), ("rect, FBP", "linear, plain"), ("rect, FBP", "rect, STE"))
ERRORS = {"EPE [px]": ("epe_px", 2), "AE [deg]": ("ae_deg", 1), "3PE [%]": ("outliers_percent", 1)}
_WORDS = (
    "A U-Net of {parameters:,} parameters learns flow from events alone: it moves them to a common time, and the loss "
    "is one over the mean gradient magnitude of their images, plus 0.003 times the Charbonnier smoothness of the flow. "
    "The arms differ in the binning of the moved events, and in nothing else: {steps} steps of {batch} crops of {crop} "
    "x {crop} pixels, AdamW from {rate:g}, {seeds} seeds each. Errors on {held_out}, at all pixels whose flow is "
    "known, and at those that had an event: mean and standard deviation over the seeds. Nothing was learned from these "
    "samples, nor was any setting chosen on them."
)


def run_flow(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    from cmaxslam_fbp.experiments.flow.arms import ARMS, measure_zero, train_arm
    from cmaxslam_fbp.experiments.flow.losses import LossSettings
    from cmaxslam_fbp.experiments.flow.training import TrainingSettings

    dsec = bench.settings.dsec
    learned, held_out = simulated_sets(bench) if dsec is None else dsec_sets(dsec)
    base = TrainingSettings()
    if bench.settings.quick:
        base = replace(base, steps=250, crop=64, channels=8, judged_every=50)
    elif dsec is not None:  # more data, denser events; batch and learning rate are those of MotionPriorCMax
        base = replace(base, steps=20_000, batch=14, learning_rate=1e-4, most_events=100_000, judged_every=1000)
    arms, seeds = (QUICK_ARMS, SEEDS[:1]) if bench.settings.quick else (tuple(ARMS), SEEDS)
    keys = [(arm, seed) for seed in seeds for arm in arms]
    settings = [asdict(replace(base, loss=LossSettings(**ARMS[arm]), seed=seed)) for arm, seed in keys]  # type: ignore[arg-type]
    rows = [
        _row(train_arm, f"{arm}, seed {seed}", learned, held_out, training)
        for (arm, seed), training in zip(keys, settings, strict=True)
    ]
    zero_row = Row("no flow", measure_zero, {"held_out": held_out.described}, {"held_out_places": held_out.places})
    (zero,) = bench.run([zero_row])
    results = dict(zip(keys, bench.run(rows), strict=True))
    gains = dict(zip(keys, _real_gains(bench, list(results.values())), strict=False))
    return _write(bench, (learned, held_out), asdict(base), zero, results, gains)


def _real_gains(bench: Workbench, results: Sequence[Values]) -> list[Values]:
    """Return what the networks do with real slices, where they are at hand."""
    from cmaxslam_fbp.experiments.flow.real_slices import measure_slices

    folder = bench.settings.real_file("slices")
    if folder is None or bench.settings.quick:
        return []
    slices = sorted(path.name for path in folder.iterdir() if path.is_dir())
    identity = digest(folder)
    rows = []
    for values in results:
        network = values["network"]
        described = {"network": network, "weights": digest(bench.settings.out / network), "slices": slices}
        rows.append(
            Row("real slices", measure_slices, {**described, "identity": identity}, {"folder": str(folder.resolve())})
        )
    return bench.run(rows)


def _row(work: Any, name: str, learned: SampleSet, held_out: SampleSet, training: dict[str, Any]) -> Row:
    settings: dict[str, Any] = {
        "training": training,
        "learned": dict(learned.described),
        "held_out": dict(held_out.described),
    }
    identity = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]
    settings["name"] = f"{name.replace(', ', '-').replace(' ', '_')}-{identity}"
    return Row(name, work, settings, {"learned_places": learned.places, "held_out_places": held_out.places})


def mean_errors(groups: Sequence[Mapping[str, Mapping[str, float]]], where: str, kind: str) -> float:
    """Return a mean over recordings, each with the same weight, of one of their errors."""
    return float(np.mean([group[where][kind] for group in groups if where in group]))


def _spread(values: Sequence[float], digits: int) -> str:
    if len(values) < 2:
        return number(values[0], digits)
    return f"{number(float(np.mean(values)), digits)} ± {number(float(np.std(values, ddof=1)), digits)}"


def _write(
    bench: Workbench,
    sets: tuple[SampleSet, SampleSet],
    training: dict[str, Any],
    zero: Values,
    results: Mapping[tuple[str, int], Values],
    gains: Mapping[tuple[str, int], Values],
) -> list[Path]:
    from cmaxslam_fbp.experiments.flow.network import FlowNet

    arms = list(dict.fromkeys(arm for arm, _ in results))
    by_arm = {arm: [values for (one, _), values in results.items() if one == arm] for arm in arms}
    held_out = sets[1]
    parameters = sum(p.numel() for p in FlowNet(training["degree"], training["channels"]).parameters())
    words = _WORDS.format(
        parameters=parameters,
        steps=training["steps"],
        batch=training["batch"],
        crop=training["crop"],
        rate=training["learning_rate"],
        seeds=len(by_arm[arms[0]]),
        held_out="recordings that are held out",
    )
    parts = [words, _main_table(zero, by_arm), _kinds_table(held_out, zero, by_arm), _differences(results)]
    parts += [_gains_table(arms, gains)] if gains else []
    parts.append(_paper())
    provenances = {"learned from": sets[0].provenance, "judged on": held_out.provenance}
    records = _records(held_out, zero, results)
    curves = {
        label: {arm: [_curve(values, label) for values in runs] for arm, runs in by_arm.items()}
        for label in ("held-out EPE [px]", "training loss")
    }
    kind = held_out.provenance.split(":")[0]
    written = [
        bench.write("flow/flow.csv", csv_text(records)),
        bench.write("flow/flow.md", page("Flow", parts, provenances, [zero, *results.values()])),
        bench.write("flow/flow.png", plot_learning_curves(curves, f"Flow learned from events alone, {kind}")),
    ]
    pictures = _pictures(bench, held_out, by_arm)
    return [*written, bench.write("flow/pictures.png", plot_pictures(pictures, f"Held-out samples, {kind}"))]


def _main_table(zero: Values, by_arm: Mapping[str, list[Values]]) -> str:
    head = ["arm", *ERRORS, *(f"{name.split()[0]} at events" for name in ERRORS)]
    rows = []
    for arm, runs in {"no flow at all": [zero], **by_arm}.items():
        cells = [
            _spread([mean_errors(run["errors"], where, kind) for run in runs], digits)
            for where in ("dense", "events")
            for kind, digits in ERRORS.values()
        ]
        rows.append([arm, *cells])
    return markdown_table(head, rows)


def _kinds_table(held_out: SampleSet, zero: Values, by_arm: Mapping[str, list[Values]]) -> str:
    """Return the end-point errors at all pixels by what the recordings are like."""
    kinds = [
        (name, kind)
        for name in ("sequence", "motion", "scene", "sensor")
        for kind in dict.fromkeys(group[name] for group in held_out.groups if name in group)
    ]
    rows = []
    for arm, runs in {"no flow at all": [zero], **by_arm}.items():
        cells = []
        for name, kind in kinds:
            of_kind = [k for k, group in enumerate(held_out.groups) if group.get(name) == kind]
            values = [mean_errors([run["errors"][k] for k in of_kind], "dense", "epe_px") for run in runs]
            cells.append(_spread(values, 2))
        rows.append([arm, *cells])
    return "EPE [px] by what the recordings are like:\n\n" + markdown_table(["arm", *(kind for _, kind in kinds)], rows)


def _gains_table(arms: Sequence[str], gains: Mapping[tuple[str, int], Values]) -> str:
    """Return by how much real events become sharper."""
    slices = list(next(iter(gains.values()))["gains"])
    rows = []
    for arm in arms:
        runs = [values["gains"] for (one, _), values in gains.items() if one == arm]
        means = [float(np.mean(list(run.values()))) for run in runs]
        rows.append([arm, *(_spread([run[name] for run in runs], 2) for name in slices), _spread(means, 2)])
    words = (
        "Real events, slices of the ECD with 30,000 events each, whose flow is not known: the variance of their images "
        "after they are moved, as a multiple of that before (nothing was learned from real events):"
    )
    return f"{words}\n\n" + markdown_table(["arm", *(name.replace("_", " ") for name in slices), "mean"], rows)


def _differences(results: Mapping[tuple[str, int], Values]) -> str:
    """Return by how much one arm's error is lower than another's, seed by seed."""
    words = []
    arms = {arm for arm, _ in results}
    for new, old in (pair for pair in PAIRS if set(pair) <= arms):
        ratios = [
            100 * (1 - mean_errors(values["errors"], "dense", "epe_px")
                   / mean_errors(results[old, seed]["errors"], "dense", "epe_px"))
            for (arm, seed), values in results.items()
            if arm == new
        ]  # fmt: skip
        words.append(f"{new} against {old}: {', '.join(f'{ratio:+.1f} %' for ratio in ratios)}")
    return "By how much the EPE is lower, seed by seed: " + "; ".join(words) + "."


def _paper() -> str:
    (mpc, fbp), sequences = (FLOW[name][0] for name in ("MPC", "FBP")), FLOW_SEQUENCES
    worst = max(sequences, key=lambda name: sequences[name][0] - sequences[name][1])
    others = [100 * (1 - new / old) for name, (old, new) in sequences.items() if name != worst]
    return (
        f"The paper trains MotionPriorCMax on DSEC, with linear binning and plain gradients (EPE {mpc}) and with rect "
        f"binning and FBP (EPE {fbp}, 9.4 % lower). One sequence, {worst} ({sequences[worst][0]} to "
        f"{sequences[worst][1]}), carries most of that; the other six improve by {min(others):.1f} to "
        f"{max(others):.1f} %. The paper tells no spread over seeds. Figures of another network on other data are not "
        "to be compared with these, only the differences between arms."
    )


def _records(held_out: SampleSet, zero: Values, results: Mapping[tuple[str, int], Values]) -> list[dict[str, Any]]:
    records = []
    for (arm, seed), values in {("no flow at all", 0): zero, **results}.items():
        for group, errors in zip(held_out.groups, values["errors"], strict=True):
            for where, figures in errors.items():
                recording = {f"recording_{name}": value for name, value in group.items()}
                records.append({"arm": arm, "seed": seed, **recording, "pixels": where, **figures})
    return records


def _curve(values: Values, label: str) -> tuple[list[float], list[float]]:
    looks = values["looks"]
    steps = [float(look["step"]) for look in looks]
    if label == "training loss":
        return steps, [look["training_loss"] for look in looks]
    return steps, [look["errors"]["epe_px"] for look in looks]


def _pictures(bench: Workbench, held_out: SampleSet, by_arm: Mapping[str, list[Values]]) -> dict[str, Any]:
    """Return for one sample of some recordings: its events, the true flow, and flow and moved events of two arms."""
    from cmaxslam_fbp.experiments.flow.pictures import sample_pictures

    out = bench.settings.out
    networks = {arm: out / runs[0]["network"] for arm, runs in by_arm.items() if arm in ("linear, plain", "rect, FBP")}
    chosen: FloatArray = np.unique(np.linspace(0, len(held_out.groups) - 1, 4).astype(int))
    return {
        " ".join(str(held_out.groups[k][name]) for name in list(held_out.groups[k])[:2]): sample_pictures(
            held_out.places, int(k), networks, out
        )
        for k in chosen
    }
