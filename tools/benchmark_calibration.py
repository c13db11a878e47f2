"""Lenses found from recordings alone, beside the true ones: focal length, principal point, trajectory, time.

Simulated hand-held rotations of 60 degrees of travel, from no guess but the lens model. The error of a trajectory is
that of a run with the lens that was found, over that of a run with the true one; also without the first second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.calibration.field_scan import middle_camera
from cmaxslam_fbp.calibration.lens_parameters import parameter_values
from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.experiments.machine import describe_machine
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


FROM_REST_S = 1.0  # within which a run is well or badly off by chance: a changed fifth digit of the lens decides it
UNIT_DEG_S = 8.1  # of the pan-tilt unit
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
    slam = Slam(load_config((), ["intensity.enabled=false"]))
    for camera in (true, found):
        result, truth = slam.run(recording.with_camera(camera)), recording.ground_truth
        assert result.evaluation is not None
        assert truth is not None
        moving = evaluate(result.trajectory(), truth, start_s=FROM_REST_S)
        errors.append((result.evaluation.absolute_best_fit_rms_deg, moving.absolute_best_fit_rms_deg))
    off = parameter_values(found, lens.names) - parameter_values(true, lens.names)
    return {
        "recording": recording.path.stem,
        "focal_percent": 100 * (np.sqrt(found.fx * found.fy / (true.fx * true.fy)) - 1),
        "centre_px": float(np.hypot(found.cx - true.cx, found.cy - true.cy)),
        "error_true_deg": errors[0][0],
        "ratio": errors[1][0] / errors[0][0],
        "ratio_moving": errors[1][1] / errors[0][1],
        "in_deviations": {name: float(x / d) for name, x, d in zip(lens.names, off, lens.deviations, strict=True)},
        "seconds": seconds,
        "cpu_s": cpu_s,
    }


def real_rows(data: Path) -> Iterator[str]:
    """Tell what two real recordings and what is known of their motion say of the focal length.

    The rate of a turn is the image's over the focal length, so the true rate gives the length.
    """
    sensor = SensorSize(240, 180)
    for name in ("evbench_seq_0001_e.mat", "IMU_rotDisk.aedat"):
        recording = open_recording(data / "real" / name, sensor_size=sensor)
        found = calibrate(recording, CalibrationGuess("pinhole"))
        seen = [name for name, observed in zip(found.lens.names, found.lens.observed, strict=True) if observed]
        yield (
            f"{name}: the image travels by {100 * found.travel.across:.0f} % of its width and "
            f"{100 * found.travel.down:.0f} % of its height; observed: {', '.join(seen) or 'nothing'}"
        )
        for focal_px in (180.0, 200.0, 220.0, 243.0):
            result = Slam().run(
                recording.with_camera(replace(middle_camera(sensor, focal_px), distortion_model="plumb_bob"))
            )
            start_ns, end_ns = result.start_ns + 2 * 10**8, result.end_ns - 10**8
            if recording.imu is None:
                inner = result.trajectory().between(start_ns, end_ns)
                turn = np.degrees((inner.rotations[0].inv() * inner.rotations[-1]).magnitude())
                rate = turn / ((inner.end_ns - inner.start_ns) * 1e-9)
                given_px = focal_px * rate / UNIT_DEG_S
                yield f"  {focal_px:g} px: {rate:.2f} deg/s; the unit's {UNIT_DEG_S} deg/s give {given_px:.0f} px"
            else:
                t_ns = np.arange(start_ns, end_ns, 5_000_000)
                camera = np.degrees(result.angular_velocities_at(t_ns))
                gyroscope = np.degrees(recording.imu.gyroscope.at(t_ns))
                roll = np.abs(camera[:, 2]).mean() / np.abs(gyroscope[:, 2]).mean()
                ours, its = (rates[:, :2].std(axis=0).max() for rates in (camera, gyroscope))
                yield (
                    f"  {focal_px:g} px: roll {roll:.3f} of the gyroscope's; across the axis the rates vary by "
                    f"{ours:.2f} deg/s, the gyroscope's by {its:.2f}"
                )


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
    parser.add_argument("--real", type=Path, metavar="DIR", help="only real recordings of this folder: what they tell")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    if options.real is not None:
        for line in real_rows(options.real):
            print(line, flush=True)
        return
    if options.quick:
        options.cameras, options.scenes, options.sensors = ["davis240c"], ["shapes"], ["ideal"]
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print("| recording | focal [%] | centre [px] | true [deg] | ratio, after 1 s | errors in deviations | s | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for camera in options.cameras:
        for scene in options.scenes:
            for sensor in options.sensors:
                for seed in options.seeds:
                    row = measure(make_recording(options, camera, scene, sensor, seed))
                    rows.append(row)
                    errors = ", ".join(f"{name} {error:+.1f}" for name, error in row["in_deviations"].items())
                    print(
                        f"| {row['recording']} | {row['focal_percent']:+.2f} | {row['centre_px']:.2f} | "
                        f"{row['error_true_deg']:.3f} | {row['ratio']:.2f}, {row['ratio_moving']:.2f} | "
                        f"{errors} | {row['seconds']:.0f} | {row['cpu_s']:.0f} |",
                        flush=True,
                    )
    print(f"\n{describe_machine()}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
