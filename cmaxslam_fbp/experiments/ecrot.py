"""The study of ECRot's synthetic sequences: CMax-SLAM and our default, beside the figures that CMax-SLAM publishes.

It runs on ECRot's bags where they are at hand, and otherwise on its bicycle panorama, simulated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.experiments.paper_figures import ECROT
from cmaxslam_fbp.experiments.sequences import StudySequence, as_sequence, digest_row
from cmaxslam_fbp.experiments.simulated_sequences import panorama_row
from cmaxslam_fbp.experiments.slam import BASELINE, OURS, ours
from cmaxslam_fbp.experiments.slam_runs import Method, run_methods
from cmaxslam_fbp.experiments.slam_tables import METRIC, errors_table, published_table, write_study
from cmaxslam_fbp.experiments.workbench import Workbench

ALIGN_AT_S = 0.1  # on synthetic recordings
# CMax-SLAM's own; it tells none for playroom.
PACKET_EVENTS = {"bicycle": 70_000, "bay": 200_000, "town": 200_000, "street": 250_000, "city": 250_000}
SCENES = tuple(next(iter(ECROT.values())))
PANORAMA = "panoramas/bicycle.jpg"
SEEDS = (301, 302, 303)  # of the simulated motions; no setting was chosen on them
# The one bag without camera_info, from ECRot's calibration file: sensor, then fx fy cx cy.
_PLAYROOM_SIZE, _PLAYROOM_LENS = (128, 128), "91.4014729896821 91.4014729896821 64 64"
_DURATION_S, _QUICK_S = 5.0, 1.5
_STAND_IN = (
    "These recordings are not ECRot's, whose motions, contrast thresholds and event rates are not known here: a "
    "published figure beside ours tells the order of magnitude, and no more."
)


def baseline(scene: str) -> Config:
    """Return CMax-SLAM's settings, with its number of events per packet of each scene."""
    events = PACKET_EVENTS.get(scene)
    return load_config(["cmax_slam"], [] if events is None else [f"frontend.events_per_packet={events}"])


METHODS: dict[str, Method] = {BASELINE: baseline, OURS: ours}


def run_ecrot(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    sequences = find_sequences(bench)
    records = run_methods(bench, "ecrot", sequences, METHODS, align_at_s=ALIGN_AT_S)
    is_original = all(one.kind == "ECRot" for one in sequences)
    parts = [METRIC.format(align_at_s=ALIGN_AT_S), errors_table(records)]
    parts.append(published_table(ECROT, records if is_original else ()))
    return write_study(bench, "ecrot", "ECRot", parts if is_original else [*parts, _STAND_IN], records)


def find_sequences(bench: Workbench) -> list[StudySequence]:
    """Return ECRot's sequences that are among the real data, or simulated ones where there is none."""
    folder = bench.settings.real_data
    bags = {} if folder is None else {scene: bag for scene in SCENES if (bag := find_bag(scene, folder))}
    if bags:
        found = bench.run([digest_row(scene, bag, "ECRot") for scene, bag in bags.items()])
        return [
            replace(as_sequence(scene, values), options=_options(bench, scene))
            for scene, values in zip(bags, found, strict=True)
        ]
    return _simulated(bench)


def find_bag(scene: str, folder: Path) -> Path | None:
    """Return the bag of a scene: `bicycle.bag`, or `bicycle/events.bag`, in the folder or in `ecrot/` inside it."""
    for place in (folder, folder / "ecrot"):
        for path in (place / f"{scene}.bag", place / scene / "events.bag"):
            if path.is_file():
                return path
    return None


def _options(bench: Workbench, scene: str) -> dict[str, Any]:
    if scene != "playroom":
        return {}
    lens = bench.write("ecrot/playroom_calib.txt", _PLAYROOM_LENS + "\n")
    return {"calibration": str(lens.resolve()), "sensor_size": list(_PLAYROOM_SIZE)}


def _simulated(bench: Workbench) -> list[StudySequence]:
    settings = bench.settings
    panorama = None if settings.quick else settings.real_file(PANORAMA)
    seeds, duration_s = (SEEDS[:1], _QUICK_S) if settings.quick else (SEEDS, _DURATION_S)
    names = [f"{'boxes' if panorama is None else 'bicycle'}_{seed}" for seed in seeds]
    rows = [panorama_row(name, panorama, duration_s, seed) for name, seed in zip(names, seeds, strict=True)]
    return [as_sequence(name, values) for name, values in zip(names, bench.run(rows), strict=True)]
