"""The study of the SLAM: CMax-SLAM, CMax-SLAM with functional backpropagation, and our default, with their maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation import Evaluation, evaluate, event_area
from cmaxslam_fbp.experiments.paper_figures import SLAM, SLAM_ABS_REDUCTION_PERCENT
from cmaxslam_fbp.experiments.sequences import ROTATIONS, StudySequence, open_sequence
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.report.map_picture import draw_map, encode_png
from cmaxslam_fbp.report.study_plots import plot_pictures
from cmaxslam_fbp.rows.row import Row, Values

BASELINE, WITH_FBP, OURS = "CMax-SLAM", "FBP", "our default"
METHODS = (BASELINE, WITH_FBP, OURS)
# The paper's change: rect instead of bilinear voting, with synthesized gradients; blur and solver stay.
_RECT = ("kernel=rect", "reconstruction=linear")
FBP_SETTINGS = tuple(f"{stage}.{setting}" for stage in ("frontend", "backend") for setting in _RECT)
FIRST_S = 30.0
_QUICK_SEQUENCES = ("dynamic_rotation", "shapes_rotation")
_TOUCHED = 235  # where maps are darker than this, they have events
_WORDS = (
    "One run over the whole sequence, judged over its first 30 s and over all of it (a run does not look ahead, so the "
    "first 30 s are those of a run that ends there). Abs and Rel as CMax-SLAM publishes them: aligned at 1 s, RMS "
    "angle in deg, and of relative rotations over 1 s in deg/s, at 50 Hz, against a ground truth after a low pass of "
    "50 ms; the floor is what a perfect estimate has by that filter, and 'unfiltered' is without it. Beside them Abs "
    "with the world's rotation from the best fit, and the event area: the share of the map's pixels that hold events."
)


def run_slam(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    sequences = bench.sequences(_QUICK_SEQUENCES if bench.settings.quick else ROTATIONS)
    keys = [(one.name, method) for one in sequences for method in METHODS]
    by_name = {one.name: one for one in sequences}
    results = dict(zip(keys, bench.run([_row(by_name[name], method) for name, method in keys]), strict=True))
    return _write(bench, sequences, results)


def slam_config(method: str, sequence: str) -> Config:
    """Return the settings of a method: the baseline has CMax-SLAM's number of events per packet of each sequence."""
    if method == OURS:
        return load_config(["default"])
    return load_config(["cmax_slam", f"ecd/{sequence}"], FBP_SETTINGS if method == WITH_FBP else ())


def _row(sequence: StudySequence, method: str) -> Row:
    config = slam_config(method, sequence.name).model_dump(mode="json")
    settings = {**sequence.described, "method": method, "config": config}
    return Row(f"{sequence.name}, {method}", measure_slam, settings, sequence.places)


def measure_slam(settings: Mapping[str, Any], out: Path) -> Values:
    """Run the SLAM over a whole sequence; keep its errors and its map."""
    config = Config.model_validate(settings["config"])
    recording = open_sequence(settings, out)
    warm_up(config, recording.require_camera())
    result = Slam(config).run(recording)
    if result.interrupted:
        raise KeyboardInterrupt
    name = f"slam/maps/{settings['sequence']}-{settings['method'].replace(' ', '_')}-{settings['identity'][:12]}.png"
    write_file(out / name, encode_png(draw_map(result.panorama)), make_folder=True)
    values: Values = {
        "files": [name],
        "map": name,
        "events": result.events,
        "duration_s": result.duration_s,
        "windows": len(result.windows),
        "lost_windows": result.lost_windows,
        "event_area_percent": 100 * event_area(result.panorama),
        "evaluations_per_window": float(np.mean([window.evaluations for window in result.windows])),
        "real_time_factor": result.real_time_factor,
        "frontend_s": result.timing.frontend_s,
        "backend_s": result.timing.backend_s,
        "first": None,
        "whole": None,
    }
    poses = recording.ground_truth
    if poses is not None:
        trajectory, origin_ns = result.trajectory(), result.start_ns
        values["first"] = _figures(evaluate(trajectory, poses, duration_s=FIRST_S, origin_ns=origin_ns))
        values["whole"] = _figures(evaluate(trajectory, poses, origin_ns=origin_ns))
    return values


def _figures(errors: Evaluation) -> dict[str, float | None]:
    return {
        "duration_s": errors.duration_s,
        "absolute_first_pose_deg": errors.absolute_first_pose_rms_deg,
        "absolute_best_fit_deg": errors.absolute_best_fit_rms_deg,
        "absolute_best_fit_max_deg": errors.absolute_best_fit_max_deg,
        "relative_1s_deg_s": errors.relative_rms_deg_s["1"],
        "relative_0.1s_deg_s": errors.relative_rms_deg_s["0.1"],
        **(asdict(errors.cmax_slam) if errors.cmax_slam else {}),
    }


def _write(bench: Workbench, sequences: list[StudySequence], results: Mapping[tuple[str, str], Values]) -> list[Path]:
    provenances = {one.name: one.provenance for one in sequences}
    records: list[dict[str, Any]] = []
    for (name, method), values in results.items():
        for part in ("first", "whole"):
            figures = values[part] or {}
            theirs = SLAM.get(method, {}).get(name.partition("_")[0], (None, None)) if part == "first" else (None, None)
            record = {"sequence": name, "method": method, "part": part, **figures}
            record |= {"paper_abs_deg": theirs[0], "paper_rel_deg_s": theirs[1]}
            record |= {name: value for name, value in values.items() if name not in ("files", "first", "whole", "map")}
            records.append(record | {"data": provenances[name]})
    parts = [_WORDS, "First 30 s:", _table(records, "first"), "Whole sequence:", _table(records, "whole")]
    parts.append(_reduction(results))
    pictures = {
        name: cut_maps({method: read_map(bench.settings.out / results[name, method]["map"]) for method in METHODS})
        for name in provenances
    }
    kinds = {one.kind for one in sequences}
    return [
        bench.write("slam/slam.csv", csv_text(records)),
        bench.write("slam/slam.md", page("SLAM", parts, provenances, list(results.values()))),
        bench.write(
            "slam/maps.png", plot_pictures(pictures, f"Maps of the whole sequences ({', '.join(sorted(kinds))})")
        ),
    ]


def _table(records: list[dict[str, Any]], part: str) -> str:
    columns = {
        "Abs": ("abs_deg", 2),
        "floor": ("abs_floor_deg", 2),
        "unfiltered": ("abs_unfiltered_deg", 3),
        "best fit": ("absolute_best_fit_deg", 3),
        "paper Abs": ("paper_abs_deg", 2),
        "Rel": ("rel_deg_s", 2),
        "floor ": ("rel_floor_deg_s", 2),
        "unfiltered ": ("rel_unfiltered_deg_s", 3),
        "paper Rel": ("paper_rel_deg_s", 2),
        "event area %": ("event_area_percent", 2),
    }
    head = ["sequence, method", *columns, "lost windows", "real-time factor"]
    rows = []
    for record in records:
        if record["part"] != part:
            continue
        cells = ["" if record.get(name) is None else number(record[name], digits) for name, digits in columns.values()]
        lost = f"{record['lost_windows']} of {record['windows']}"
        rows.append([f"{record['sequence']}, {record['method']}", *cells, lost, number(record["real_time_factor"])])
    return markdown_table(head, rows)


def _reduction(results: Mapping[tuple[str, str], Values]) -> str:
    """Return by how much the paper's change lowers Abs over the first 30 s, as a mean over the sequences."""
    words = []
    for label, figure in (("unfiltered", "abs_unfiltered_deg"), ("best fit", "absolute_best_fit_deg")):
        names = dict.fromkeys(name for name, _ in results)
        pairs = [(results[name, WITH_FBP]["first"], results[name, BASELINE]["first"]) for name in names]
        ratios = [func[figure] / plain[figure] for func, plain in pairs if func and plain and figure in plain]
        if ratios:
            words.append(f"{100 * (1 - float(np.mean(ratios))):.1f} % ({label})")
    return (
        f"FBP lowers Abs over the first 30 s by {' and '.join(words) or 'n/a'} in the mean over the sequences; "
        f"the paper tells {SLAM_ABS_REDUCTION_PERCENT} %."
    )


def read_map(path: Path) -> npt.NDArray[np.uint8] | None:
    """Return a map that a row has written, in grey; None where it cannot be read."""
    import cv2

    picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    return None if picture is None else np.asarray(picture, np.uint8)


def cut_maps(pictures: Mapping[str, npt.NDArray[np.uint8] | None]) -> dict[str, npt.NDArray[np.uint8] | None]:
    """Cut maps to the part in which any of them has events."""
    known = [picture for picture in pictures.values() if picture is not None]
    touched = np.min(known, axis=0) < _TOUCHED if known else np.empty((0, 0), bool)
    rows, columns = np.flatnonzero(touched.any(axis=1)), np.flatnonzero(touched.any(axis=0))
    if not len(rows):
        return dict(pictures)
    part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return {method: None if picture is None else picture[part] for method, picture in pictures.items()}
