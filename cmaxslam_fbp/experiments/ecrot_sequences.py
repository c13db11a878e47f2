"""ECRot's synthetic sequences: its bags where they are at hand, and otherwise its bicycle panorama, simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from cmaxslam_fbp.experiments.paper_figures import ECROT
from cmaxslam_fbp.experiments.sequences import StudySequence, as_sequence, digest_row
from cmaxslam_fbp.experiments.simulated_sequences import panorama_row
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
