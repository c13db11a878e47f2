"""Hand-held recordings in rooms: errors of a rotation alone, and with translation and distances, online and refined.

Recordings: the motion of a TUM file with its positions, or random hands about a wrist; a realistic sensor. A pure
rotation of the same seed shows what the model costs where there is no parallax.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from cmaxslam_fbp.config import load_config
from cmaxslam_fbp.experiments.machine import describe_machine
from cmaxslam_fbp.experiments.simulated_sequences import make_recording
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.simulation import SENSORS, RoomSettings, RoomSimulation, Simulation, SimulationSettings


def recordings(options: argparse.Namespace) -> list[Path]:
    """Return the recordings, made where they are missing."""
    wanted: dict[str, Simulation] = {}
    common: dict[str, Any] = {"sensor": SENSORS[options.sensor], "duration_s": options.duration, "seed": options.seed}
    if options.trajectory is not None:
        common["trajectory"] = read_trajectory(options.trajectory)
    source = "hand" if options.trajectory is None else "real"
    tail = f"{options.duration:g}s_{options.sensor}_seed{options.seed}.bag"
    for scene in options.scenes:
        for distance_m in options.distances:
            settings = RoomSettings(
                scene=scene, scene_distance_m=distance_m, room=options.room, lever_m=options.lever, **common
            )
            wanted[f"{scene}_{options.room}_{distance_m:g}m_{source}_{tail}"] = RoomSimulation(settings)
        if options.rotation:
            wanted[f"{scene}_rotation_{source}_{tail}"] = Simulation(SimulationSettings(scene=scene, **common))
    for name, simulation in wanted.items():
        if not (options.folder / name).exists():
            make_recording(simulation, options.folder / name)
    return [options.folder / name for name in wanted]


def measure(path: Path, arm: str) -> dict[str, Any]:
    """Run a recording, with one model of the translation, refined or not."""
    translation, _, refine = arm.partition("+")
    config = load_config((), [f"backend.translation={translation}"])
    recording = open_recording(path)
    warm_up(config, recording.require_camera())
    began = time.process_time()
    result = Slam(config).run(recording, refine=bool(refine))
    errors = result.evaluation
    assert errors is not None
    return {
        "recording": path.stem,
        "arm": arm,
        "best_fit_deg": errors.absolute_best_fit_rms_deg,
        "first_pose_deg": errors.absolute_first_pose_rms_deg,
        "relative_1s_deg_s": errors.relative_rms_deg_s["1"],
        "relative_0.1s_deg_s": errors.relative_rms_deg_s["0.1"],
        "parallax_deg": result.parallax_deg,
        "lost_windows": result.lost_windows,
        "position_cm": None if errors.position_rms_m is None else 100 * errors.position_rms_m,
        "path_cm": None if errors.position_path_rms_m is None else 100 * errors.position_path_rms_m,
        "event_area": result.event_area,
        "refinement_s": result.timing.refinement_s,
        "cpu_s": time.process_time() - began,
        "duration_s": result.duration_s,
        "warnings": result.warnings,
    }


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("benchmark_hand_held"), help="where recordings are kept")
    parser.add_argument("--trajectory", type=Path, help="TUM file with positions; a random hand without it")
    parser.add_argument("--scenes", nargs="+", default=["shapes", "poster"])
    parser.add_argument("--distances", nargs="*", type=float, default=[0.5, 1.0], metavar="M")
    parser.add_argument("--room", default="box", choices=["box", "wall", "clutter"])
    parser.add_argument("--sensor", default="davis", choices=sorted(SENSORS))
    parser.add_argument("--duration", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=71)
    parser.add_argument("--lever", type=float, default=0.1, metavar="M", help="of a random hand")
    parser.add_argument(
        "--arms",
        nargs="+",
        default=["none", "scene", "scene+refine"],
        choices=[f"{model}{how}" for model in ("none", "sphere", "scene", "auto") for how in ("", "+refine")],
        help="backend.translation, with or without --refine",
    )
    parser.add_argument("--rotation", action="store_true", help="also a camera that only turns")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print(
        "| recording | arm | best fit [deg] | first pose | 1 s [deg/s] | 0.1 s | position [cm] | parallax [deg] | "
        "event area | refinement [s] | processor time / recording |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in recordings(options):
        for arm in options.arms:
            row = measure(path, arm)
            rows.append(row)
            place = "-" if row["position_cm"] is None else f"{row['position_cm']:.2f} of {row['path_cm']:.2f}"
            print(
                f"| {row['recording']} | {arm} | {row['best_fit_deg']:.3f} | {row['first_pose_deg']:.3f} | "
                f"{row['relative_1s_deg_s']:.3f} | {row['relative_0.1s_deg_s']:.2f} | {place} | "
                f"{'-' if row['parallax_deg'] is None else format(row['parallax_deg'], '.2f')} | "
                f"{100 * row['event_area']:.3f} % | {row['refinement_s']:.0f} | "
                f"{row['cpu_s'] / row['duration_s']:.2f} |",
                flush=True,
            )
    print(f"\n{describe_machine()}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
