"""Accuracy and speed of the SLAM on simulated recordings, both presets, with the machine's calibration.

Recordings: shapes, boxes and poster with hand-held motion up to 350 deg/s (10 s each), and, where they are given, an
equirectangular photograph and a real trajectory to follow. OPENBLAS_NUM_THREADS=1, which `cmaxslam-fbp` sets for
itself, should be set: threads of OpenBLAS disturb the two of a run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.config import load_config
from cmaxslam_fbp.experiments.machine import calibration_us
from cmaxslam_fbp.experiments.simulated_sequences import make_recording
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.memory import peak_memory_mb
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

_PASS = 1_000_000  # events of the calibration
PACKETS = {"shapes": "ecd/shapes_rotation", "poster": "ecd/poster_rotation"}  # of the baseline; boxes otherwise


def recordings(
    folder: Path, duration_s: float, panorama: Path | None, trajectory: Path | None, long: bool, seed: int
) -> list[Path]:
    """Return the recordings, made where they are missing."""
    wanted = {
        f"{scene}_{duration_s:g}s_seed{seed}.bag": SimulationSettings(scene=scene, duration_s=duration_s, seed=seed)
        for scene in ("shapes", "boxes", "poster")
    }
    if panorama is not None and trajectory is not None:
        motion = read_trajectory(trajectory)
        # From 25 s on the real motion reaches several hundred degrees per second.
        part = motion.between(motion.start_ns + 25 * 10**9, motion.start_ns + round((25.1 + duration_s) * 1e9))
        settings = SimulationSettings(scene=panorama, trajectory=part, duration_s=duration_s)
        wanted[f"{panorama.stem}_real_{duration_s:g}s.bag"] = settings
    if trajectory is not None and long:
        wanted["shapes_real_60s.bag"] = SimulationSettings(scene="shapes", trajectory=read_trajectory(trajectory))
    for name, settings in wanted.items():
        if not (folder / name).exists():
            make_recording(Simulation(settings), folder / name)
    return [folder / name for name in wanted]


def measure(path: Path, preset: str, refine: bool) -> dict[str, Any]:
    """Run one preset on one recording."""
    packets = next((name for scene, name in PACKETS.items() if path.name.startswith(scene)), "ecd/boxes_rotation")
    config = load_config([preset, packets] if preset == "cmax_slam" else [preset])
    recording = open_recording(path)
    warm_up(config, recording.require_camera())
    result = Slam(config).run(recording, refine=refine)
    errors = result.evaluation
    assert errors is not None
    return {
        "recording": path.stem,
        "preset": preset + (" --refine" if refine else ""),
        "mev_s": result.events / result.duration_s / 1e6,
        "absolute_best_fit_rms_deg": errors.absolute_best_fit_rms_deg,
        "time_offset_ms": None if errors.time_offset_s is None else 1e3 * errors.time_offset_s,
        "absolute_at_time_offset_rms_deg": errors.absolute_at_time_offset_rms_deg,
        "relative_0.1s_rms_deg_s": errors.relative_rms_deg_s["0.1"],
        "lost_windows": result.lost_windows,
        "evaluations_per_window": float(np.mean([window.evaluations for window in result.windows])),
        "real_time_factor": result.real_time_factor,
        "frontend_s": result.timing.frontend_s,
        "backend_s": result.timing.backend_s,
        "wall_ns_per_event": 1e9 * result.timing.wall_s / result.events,
        "bincount_ns_per_event": 1e3 * calibration_us(_PASS) / _PASS,
        "peak_memory_mb": peak_memory_mb(),
    }


def describe(row: dict[str, Any]) -> str:
    """Return one row as a line."""
    offset = (
        ""
        if row["time_offset_ms"] is None
        else (f" ({row['absolute_at_time_offset_rms_deg']:.3f} at {row['time_offset_ms']:+.2f} ms)")
    )
    return (
        f"{row['recording']:<20} {row['preset']:<17} {row['mev_s']:5.2f} Mev/s: "
        f"abs {row['absolute_best_fit_rms_deg']:.3f} deg{offset}, rel {row['relative_0.1s_rms_deg_s']:.2f} deg/s, "
        f"lost {row['lost_windows']}, {row['evaluations_per_window']:.1f} evaluations a window, "
        f"{row['real_time_factor']:.2f} of real time, "
        f"{row['wall_ns_per_event'] / row['bincount_ns_per_event']:.0f} bincount passes, {row['peak_memory_mb']:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("benchmark_recordings"), help="where recordings are kept")
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of scenes and motions; the defaults were chosen on seed 0")
    parser.add_argument("--panorama", type=Path, help="equirectangular photograph")
    parser.add_argument("--trajectory", type=Path, help="real trajectory (TUM or groundtruth.txt)")
    parser.add_argument(
        "--long", action="store_true", help="also 60 s along the whole trajectory, with and without --refine"
    )
    parser.add_argument("--presets", nargs="+", default=["default", "cmax_slam"])
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for path in recordings(
        options.folder, options.duration, options.panorama, options.trajectory, options.long, options.seed
    ):
        for preset in options.presets:
            for refine in (False, True) if "60s" in path.name and preset == "default" else (False,):
                rows.append(measure(path, preset, refine))
                print(describe(rows[-1]), flush=True)
    print(f"calibration: one np.bincount pass takes {rows[-1]['bincount_ns_per_event']:.3f} ns per event")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
