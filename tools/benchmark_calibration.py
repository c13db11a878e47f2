"""Lenses found from recordings alone, beside the true ones: focal length, principal point, trajectory, time.

Simulated hand-held rotations of 60 degrees of travel, from no guess but the lens model. The error of a trajectory is
that of runs with the lens that was found, over that of runs with the true one; also without the first second. A run's
error depends on the fifth digit of its lens by chance, so each lens is run several times with others (`--draws`), and
the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.calibration.field_scan import middle_camera
from cmaxslam_fbp.calibration.lens_parameters import parameter_values
from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation import evaluate
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.experiments.machine import describe_machine
from cmaxslam_fbp.experiments.simulated_sequences import make_recording
from cmaxslam_fbp.geometry.camera import Camera, davis240c, dvxplorer
from cmaxslam_fbp.io import Recording, open_recording
from cmaxslam_fbp.pipeline import Slam
from cmaxslam_fbp.pipeline.calibrating import CalibrationGuess, calibrate
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.simulation import SENSORS, Simulation, SimulationSettings


def fisheye() -> Camera:
    """Return a fisheye of 100 degrees across."""
    focal_px = 320 / np.radians(100)
    return Camera(320, 240, focal_px, focal_px, 155.0, 123.0, (0.02, -0.01, 0.0, 0.0), "equidistant")


FROM_REST_S = 1.0  # within which a run is well or badly off by chance: a changed fifth digit of the lens decides it
FIFTH_DIGIT = 1e-5
UNIT_DEG_S = 8.1  # of the pan-tilt unit
CAMERAS = {"davis240c": davis240c, "dvxplorer": dvxplorer, "fisheye": fisheye}
# The read-out of a DAVIS passes 12 million events a second: those of a VGA sensor would come seconds late.
REALISTIC = {"davis240c": "davis", "dvxplorer": "dvxplorer", "fisheye": "davis"}


def recording_of(options: argparse.Namespace, camera: str, scene: str, sensor: str, seed: int) -> Recording:
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
        make_recording(Simulation(settings), path)
    return open_recording(path)


def run_errors(recording: Recording, camera: Camera, draws: int) -> FloatArray:
    """Return the errors (draws, 2) in degrees, of whole runs and after 1 s; all runs but one with drawn digits."""
    slam, truth = Slam(load_config((), ["intensity.enabled=false"])), recording.ground_truth
    assert truth is not None
    errors = []
    for digits in np.random.default_rng(0).normal(0.0, FIFTH_DIGIT, (draws, 2)) * (np.arange(draws) > 0)[:, None]:
        drawn = replace(camera, fx=camera.fx * (1 + digits[0]), fy=camera.fy * (1 + digits[1]))
        trajectory = slam.run(recording.with_camera(drawn)).trajectory()
        fits = evaluate(trajectory, truth), evaluate(trajectory, truth, start_s=FROM_REST_S)
        errors.append([fit.absolute_best_fit_rms_deg for fit in fits])
    return np.array(errors)


def measure(recording: Recording, draws: int) -> dict[str, Any]:
    """Find the lens of a recording, and judge it."""
    true = recording.require_camera()
    warm_up(Config(), true)
    began, cpu = time.perf_counter(), time.process_time()
    lens = calibrate(recording, CalibrationGuess(model=true.distortion_model)).lens
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    found = lens.camera
    errors = {name: run_errors(recording, camera, draws) for name, camera in (("true", true), ("found", found))}
    medians = {name: np.median(values, axis=0) for name, values in errors.items()}
    ratio, ratio_moving = medians["found"] / medians["true"]
    off = parameter_values(found, lens.names) - parameter_values(true, lens.names)
    return {
        "recording": recording.path.stem,
        "focal_percent": 100 * (np.sqrt(found.fx * found.fy / (true.fx * true.fy)) - 1),
        "centre_px": float(np.hypot(found.cx - true.cx, found.cy - true.cy)),
        "errors_deg": {name: values[:, 0].tolist() for name, values in errors.items()},
        "ratio": float(ratio),
        "ratio_moving": float(ratio_moving),
        "in_deviations": {name: float(x / d) for name, x, d in zip(lens.names, off, lens.deviations, strict=True)},
        "seconds": seconds,
        "cpu_s": cpu_s,
    }


def spread_of(errors: Sequence[float]) -> str:
    """Return the least, the median and the largest of some errors."""
    return " ".join(f"{error:.3f}" for error in (min(errors), np.median(errors), max(errors)))


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
    parser.add_argument("--sensors", nargs="+", default=["ideal", "realistic"], choices=["realistic", *sorted(SENSORS)])
    parser.add_argument("--seeds", nargs="+", type=int, default=[201])
    parser.add_argument("--duration", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--draws", type=int, default=3, help="runs with each lens, whose fifth digits differ")
    parser.add_argument("--quick", action="store_true", help="one recording: shapes, ideal, davis240c")
    parser.add_argument("--real", type=Path, metavar="DIR", help="only real recordings of this folder: what they tell")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    if options.real is not None:
        for line in real_rows(options.real):
            print(line, flush=True)
        return
    if options.quick:
        options.cameras, options.scenes, options.sensors, options.draws = ["davis240c"], ["shapes"], ["ideal"], 1
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print(
        "| recording | focal [%] | centre [px] | error with the true lens: least, median, most [deg] | with the one "
        "found | ratio, after 1 s | errors in deviations | s | CPU s |"
    )
    print("| --- " * 9 + "|")
    for camera in options.cameras:
        for scene in options.scenes:
            for sensor in (REALISTIC[camera] if one == "realistic" else one for one in options.sensors):
                for seed in options.seeds:
                    row = measure(recording_of(options, camera, scene, sensor, seed), options.draws)
                    rows.append(row)
                    errors = ", ".join(f"{name} {error:+.1f}" for name, error in row["in_deviations"].items())
                    true, found = (spread_of(row["errors_deg"][lens]) for lens in ("true", "found"))
                    print(
                        f"| {row['recording']} | {row['focal_percent']:+.2f} | {row['centre_px']:.2f} | "
                        f"{true} | {found} | {row['ratio']:.2f}, {row['ratio_moving']:.2f} | "
                        f"{errors} | {row['seconds']:.0f} | {row['cpu_s']:.0f} |",
                        flush=True,
                    )
    print(f"\n{describe_machine()}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
