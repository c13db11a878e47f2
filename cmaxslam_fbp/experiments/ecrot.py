"""The study of ECRot's synthetic sequences: CMax-SLAM and our default, beside the figures that CMax-SLAM publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation import evaluate, event_area
from cmaxslam_fbp.experiments.ecrot_sequences import ALIGN_AT_S, PACKET_EVENTS, EcrotSequence, find_sequences
from cmaxslam_fbp.experiments.paper_figures import ECROT
from cmaxslam_fbp.experiments.slam import BASELINE, OURS, cut_maps, read_map
from cmaxslam_fbp.experiments.tables import csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.opening import open_recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.report.map_picture import draw_map, encode_png
from cmaxslam_fbp.report.study_plots import plot_pictures
from cmaxslam_fbp.rows.row import Row, Values

METHODS = (BASELINE, OURS)
_WORDS = (
    "Abs and Rel as CMax-SLAM publishes them for synthetic sequences: aligned at 0.1 s, RMS angle in deg, and of "
    "relative rotations over 1 s in deg/s, at 50 Hz, against a ground truth after a low pass of 50 ms; the floor is "
    "what a perfect estimate has by that filter, and 'unfiltered' is without it. Beside "
    "them Abs with the world's rotation from the best fit, unfiltered."
)
_PUBLISHED_BASELINE = "CMax-SLAM, linear"
_PUBLISHED = "Published, Abs / Rel, on ECRot's own recordings:"
_STAND_IN = (
    "These recordings are not ECRot's, whose motions, contrast thresholds and event rates are not known here: a "
    "published figure beside ours tells the order of magnitude, and no more."
)


def run_ecrot(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    sequences = find_sequences(bench)
    keys = [(one, method) for one in sequences for method in METHODS]
    values = bench.run([_row(one, method) for one, method in keys])
    results = {(one.name, method): found for (one, method), found in zip(keys, values, strict=True)}
    return _write(bench, sequences, results)


def ecrot_config(method: str, scene: str) -> Config:
    """Return the settings of a method: the baseline has CMax-SLAM's number of events per packet of each scene."""
    if method == OURS:
        return load_config(["default"])
    events = PACKET_EVENTS.get(scene)
    return load_config(["cmax_slam"], [] if events is None else [f"frontend.events_per_packet={events}"])


def _row(sequence: EcrotSequence, method: str) -> Row:
    config = ecrot_config(method, sequence.scene).model_dump(mode="json")
    settings = {"sequence": sequence.name, "identity": sequence.identity, "method": method, "config": config}
    return Row(f"{sequence.name}, {method}", measure_ecrot, settings, sequence.places)


def measure_ecrot(settings: Mapping[str, Any], out: Path) -> Values:
    """Run the SLAM over a sequence; keep its published errors and its map."""
    config = Config.model_validate(settings["config"])
    recording = open_recording(out / settings["recording"], **settings["options"])
    warm_up(config, recording.require_camera())
    result = Slam(config).run(recording)
    if result.interrupted:
        raise KeyboardInterrupt
    name = f"ecrot/maps/{settings['sequence']}-{settings['method'].replace(' ', '_')}-{settings['identity'][:12]}.png"
    write_file(out / name, encode_png(draw_map(result.panorama)), make_folder=True)
    poses = recording.ground_truth
    errors: dict[str, float | None] = {}
    if poses is not None:
        judged = evaluate(result.trajectory(), poses, origin_ns=result.start_ns, align_at_s=ALIGN_AT_S)
        errors = {"best_fit_deg": judged.absolute_best_fit_rms_deg}
        errors |= asdict(judged.cmax_slam) if judged.cmax_slam else {}
    return {
        "files": [name],
        "map": name,
        "errors": errors,
        "events": result.events,
        "duration_s": result.duration_s,
        "windows": len(result.windows),
        "lost_windows": result.lost_windows,
        "event_area_percent": 100 * event_area(result.panorama),
        "real_time_factor": result.real_time_factor,
    }


def _write(bench: Workbench, sequences: list[EcrotSequence], results: Mapping[tuple[str, str], Values]) -> list[Path]:
    by_name = {one.name: one for one in sequences}
    records: list[dict[str, Any]] = []
    for (name, method), values in results.items():
        kept = {key: value for key, value in values.items() if key not in ("files", "map", "errors")}
        theirs = ECROT[_PUBLISHED_BASELINE].get(by_name[name].scene) if method == BASELINE else None
        published = dict(zip(("published_abs_deg", "published_rel_deg_s"), theirs or (None, None), strict=True))
        record = {"sequence": name, "method": method, **kept, **values["errors"], **published}
        records.append(record | {"data": by_name[name].provenance})
    parts = [_WORDS, _table(records), _PUBLISHED, _published_table()]
    if not all(one.is_original for one in sequences):
        parts.append(_STAND_IN)
    pictures = {
        one.name: cut_maps({m: read_map(bench.settings.out / results[one.name, m]["map"]) for m in METHODS})
        for one in sequences
    }
    provenances = {one.name: one.provenance for one in sequences}
    return [
        bench.write("ecrot/ecrot.csv", csv_text(records)),
        bench.write("ecrot/ecrot.md", page("ECRot", parts, provenances, list(results.values()))),
        bench.write("ecrot/ecrot.png", plot_pictures(pictures, "Maps of the sequences")),
    ]


def _table(records: list[dict[str, Any]]) -> str:
    columns = {
        "Abs": ("abs_deg", 3),
        "floor": ("abs_floor_deg", 3),
        "unfiltered": ("abs_unfiltered_deg", 3),
        "best fit": ("best_fit_deg", 3),
        "published Abs": ("published_abs_deg", 3),
        "Rel": ("rel_deg_s", 3),
        "floor ": ("rel_floor_deg_s", 3),
        "unfiltered ": ("rel_unfiltered_deg_s", 3),
        "published Rel": ("published_rel_deg_s", 3),
        "event area %": ("event_area_percent", 2),
    }
    rows = []
    for record in records:
        cells = ["" if record.get(key) is None else number(record[key], digits) for key, digits in columns.values()]
        lost = f"{record['lost_windows']} of {record['windows']}"
        rows.append([f"{record['sequence']}, {record['method']}", *cells, lost, number(record["real_time_factor"])])
    return markdown_table(["sequence, method", *columns, "lost windows", "real-time factor"], rows)


def _published_table() -> str:
    scenes = list(next(iter(ECROT.values())))
    rows = [[method, *(f"{table[s][0]:.3f} / {table[s][1]:.3f}" for s in scenes)] for method, table in ECROT.items()]
    return markdown_table(["method", *scenes], rows)
