"""Runs of the SLAM over sequences by several methods: their errors, as published and our own, and their maps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.config import Config
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.experiments.sequences import StudySequence, open_sequence
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.report.map_picture import draw_map, encode_png
from cmaxslam_fbp.rows.row import Row, Values

FIRST_S = 30.0
Record = dict[str, Any]
Method = Callable[[str], Config]  # the settings of a method for a scene, e.g. "boxes"


def run_methods(
    bench: Workbench,
    study: str,
    sequences: Sequence[StudySequence],
    methods: Mapping[str, Method],
    *,
    align_at_s: float,
    refined: Sequence[str] = (),
) -> list[Record]:
    """Run the first 30 s of every sequence by every method; return one record each, sequence by sequence.

    Parameters
    ----------
    bench, study : where rows are computed, and the folder of its maps
    sequences, methods : what is run, and how
    align_at_s : instant of the published metric's alignment
    refined : the methods after which everything is adjusted against the whole map
    """
    keys = [(one, name) for one in sequences for name in methods]
    rows = []
    for one, name in keys:
        settings = {
            **one.described,
            "study": study,
            "method": name,
            "config": methods[name](one.scene).model_dump(mode="json"),
            "refine": name in refined,
            "align_at_s": align_at_s,
        }
        rows.append(Row(f"{one.name}, {name}", measure_slam, settings, one.places))
    return [
        {"sequence": one.name, "method": name, **values, "data": one.provenance}
        for (one, name), values in zip(keys, bench.run(rows), strict=True)
    ]


def measure_slam(settings: Mapping[str, Any], out: Path) -> Values:
    """Run the SLAM over the first 30 s of a sequence; keep its errors and its map."""
    config = Config.model_validate(settings["config"])
    recording = open_sequence(settings, out)
    warm_up(config, recording.require_camera())
    began_s = time.process_time()
    result = Slam(config).run(recording, duration_s=FIRST_S, refine=settings["refine"])
    cpu_s = time.process_time() - began_s
    if result.interrupted:
        raise KeyboardInterrupt
    method = settings["method"].replace(" ", "_").replace(",", "")
    name = f"{settings['study']}/maps/{settings['sequence']}-{method}-{settings['identity'][:12]}.png"
    write_file(out / name, encode_png(draw_map(result.panorama)), make_folder=True)
    values: Values = {
        "files": [name],
        "map": name,
        "events": result.events,
        "duration_s": result.duration_s,
        "windows": len(result.windows),
        "lost_windows": result.lost_windows,
        "event_area_percent": 100 * result.event_area,
        "evaluations_per_window": float(np.mean([window.evaluations for window in result.windows])),
        "real_time_factor": result.real_time_factor,
        "cpu_s": cpu_s,
    }
    if recording.ground_truth is not None:
        judged = evaluate(
            result.trajectory(),
            recording.ground_truth,
            duration_s=FIRST_S,
            origin_ns=result.start_ns,
            align_at_s=settings["align_at_s"],
        )
        values |= {
            "best_fit_deg": judged.absolute_best_fit_rms_deg,
            "best_fit_max_deg": judged.absolute_best_fit_max_deg,
            "first_pose_deg": judged.absolute_first_pose_rms_deg,
            "relative_0.1s_deg_s": judged.relative_rms_deg_s["0.1"],
            **(asdict(judged.cmax_slam) if judged.cmax_slam else {}),
        }
    return values
