"""Lenses found from recordings alone, beside the true ones: focal length, principal point, trajectory, time.

Simulated hand-held rotations of 60 degrees of travel, from no guess but the lens model. The error of a trajectory is
that of a run with the lens that was found, over that of a run with the true one.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.calibration.lens_parameters import parameter_values
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.geometry.camera import Camera, davis240c, dvxplorer
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.calibrating import CalibrationGuess, calibrate
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.simulation import SENSORS, Simulation, SimulationSettings


def fisheye() -> Camera:
    """Return a fisheye of 100 degrees across."""
    focal_px = 320 / np.radians(100)
    return Camera(320, 240, focal_px, focal_px, 155.0, 123.0, (0.02, -0.01, 0.0, 0.0), "equidistant")


CAMERAS = {"davis240c": davis240c, "dvxplorer": dvxplorer, "fisheye": fisheye}


def make_recording(options: argparse.Namespace, camera: str, scene: str, sensor: str, seed: int) -> Recording:
    """Simulate a recording, unless the file is there already."""
    path: Path = options.folder / f"{camera}_{scene}_{sensor}_{options.duration:g}s_seed{seed}.bag"
    if not path.exists():
        settings = SimulationSettings(
            scene=scene,
            camera=CAMERAS[camera](),
            sensor=SENSORS[sensor],
            duration_s=options.duration,
            extent_deg=30.0,
            seed=seed,
        )
        simulation = Simulation(settings)
        write_recording(simulation, simulation.chunks(), path)
    return open_recording(path)


def measure(recording: Recording) -> dict[str, Any]:
    """Find the lens of a recording, and judge it."""
    true = recording.require_camera()
    warm_up(Config(), true)
    began, cpu = time.perf_counter(), time.process_time()
    lens = calibrate(recording, CalibrationGuess(model=true.distortion_model)).lens
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    found, errors = lens.camera, []
    for camera in (true, found):
        evaluation = Slam().run(recording.with_camera(camera)).evaluation
        assert evaluation is not None
        errors.append(evaluation.absolute_best_fit_rms_deg)
    off = parameter_values(found, lens.names) - parameter_values(true, lens.names)
    return {
        "recording": recording.path.stem,
        "focal_percent": 100 * (np.sqrt(found.fx * found.fy / (true.fx * true.fy)) - 1),
        "centre_px": float(np.hypot(found.cx - true.cx, found.cy - true.cy)),
        "error_true_deg": errors[0],
        "error_deg": errors[1],
        "in_deviations": {name: float(x / d) for name, x, d in zip(lens.names, off, lens.deviations, strict=True)},
        "seconds": seconds,
        "cpu_s": cpu_s,
    }


def bincount_ns() -> float:
    """Return the time of one np.bincount per event: the machine's calibration."""
    bins = np.random.default_rng(0).integers(0, 1 << 19, 2_000_000)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        np.bincount(bins, minlength=1 << 19)
        times.append(time.perf_counter() - began)
    return min(times) / len(bins) * 1e9


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("benchmark_calibration"), help="where recordings are kept")
    parser.add_argument("--cameras", nargs="+", default=list(CAMERAS), choices=list(CAMERAS))
    parser.add_argument("--scenes", nargs="+", default=["shapes", "boxes", "poster"])
    parser.add_argument("--sensors", nargs="+", default=["ideal", "davis"], choices=sorted(SENSORS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[201])
    parser.add_argument("--duration", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--quick", action="store_true", help="one recording: shapes, ideal, davis240c")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    if options.quick:
        options.cameras, options.scenes, options.sensors = ["davis240c"], ["shapes"], ["ideal"]
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print("| recording | focal [%] | centre [px] | error, true lens [deg] | ratio | largest deviation | s | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for camera in options.cameras:
        for scene in options.scenes:
            for sensor in options.sensors:
                for seed in options.seeds:
                    row = measure(make_recording(options, camera, scene, sensor, seed))
                    rows.append(row)
                    name, worst = max(row["in_deviations"].items(), key=lambda item: abs(item[1]))
                    print(
                        f"| {row['recording']} | {row['focal_percent']:+.2f} | {row['centre_px']:.2f} | "
                        f"{row['error_true_deg']:.3f} | {row['error_deg'] / row['error_true_deg']:.2f} | "
                        f"{name} {worst:+.1f} | {row['seconds']:.0f} | {row['cpu_s']:.0f} |",
                        flush=True,
                    )
    print(f"\nnp.bincount: {bincount_ns():.2f} ns per event")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
