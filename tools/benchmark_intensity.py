"""The brightness of simulated scenes from events: correlation and similarity with the truth, and what it costs.

Runs the SLAM on recordings that it simulates, paints the brightness along the SLAM's own trajectory, and compares it
with the true log panorama over what was seen, after the best affine change of brightness.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from cmaxslam_fbp.arrays import Picture, SingleArray
from cmaxslam_fbp.choices import REFINEMENTS
from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.evaluation.map_quality import compare_brightness
from cmaxslam_fbp.experiments.machine import EVENTS, calibration_us
from cmaxslam_fbp.experiments.simulated_sequences import make_recording
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.pipeline import Slam, SlamResult
from cmaxslam_fbp.pipeline.painting import paint
from cmaxslam_fbp.pipeline.warm_up import warm_up
from cmaxslam_fbp.report.map_picture import draw_brightness
from cmaxslam_fbp.simulation import SENSORS, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.scene_map import log_levels
from cmaxslam_fbp.trajectory import RotationTrajectory

TARGETS = {"ideal": (0.9, 0.7), "davis": (0.8, 0.55), "dvxplorer": (0.8, 0.55)}


def true_brightness(simulation: Simulation, result: SlamResult, size: tuple[int, int]) -> SingleArray:
    """Return the scene's log intensity (height, width) in the world of an estimate, as the lens and the map blur it."""
    scene, camera = simulation.panorama, simulation.camera
    texels = scene.shape[1] / (2 * np.pi)
    lens_px = simulation.settings.blur_px / max(camera.fx, camera.fy) * texels
    map_px = 0.35 * scene.shape[1] / size[0]
    blurred = log_levels(np.asarray(cv2.GaussianBlur(scene, (0, 0), lens_px), np.float32))
    blurred = np.asarray(cv2.GaussianBlur(blurred, (0, 0), map_px), np.float32)
    rows, columns = np.indices(size[::-1])
    directions = Equirectangular(*size).unproject(np.stack([columns, rows], axis=-1))
    turned = directions @ world_from_estimate(simulation.ground_truth, result.trajectory()).as_matrix().T
    place = Equirectangular(scene.shape[1], scene.shape[0]).project(turned).astype(np.float32)
    truth = cv2.remap(blurred, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    return np.asarray(truth, np.float32)


def detail_correlation(estimate: SingleArray, simulation: Simulation, result: SlamResult) -> float:
    """Return how the detail of an estimate correlates with the truth's: what is finer than a pixel of the map of edges.

    Both are compared at twice that map's resolution, whatever that of the estimate: a finer map has to earn it.
    """
    height, width = (2 * side for side in result.panorama.shape)
    rows, columns = np.indices((height, width)).astype(np.float32) * np.float32(estimate.shape[1] / width)
    enlarged = cv2.remap(estimate, columns, rows, cv2.INTER_CUBIC, borderMode=cv2.BORDER_WRAP)
    seen = np.isfinite(enlarged)
    weights = np.maximum(cv2.GaussianBlur(seen.astype(np.float32), (0, 0), 2.0), 1e-3)
    fine = []
    for image in (enlarged, true_brightness(simulation, result, (width, height))):
        filled = np.where(seen, image, 0).astype(np.float32)
        fine.append((filled - cv2.GaussianBlur(filled, (0, 0), 2.0) / weights)[seen])
    return float(np.corrcoef(fine[0], fine[1])[0, 1])


def world_from_estimate(truth: RotationTrajectory, estimate: RotationTrajectory) -> Rotation:
    """Return the rotation that fits best."""
    known = truth.covers(estimate.t_ns)
    return (truth.rotation_at(estimate.t_ns[known]) * estimate.rotations[known].inv()).mean()


def side_by_side(truth: SingleArray, estimate: SingleArray) -> Picture:
    """Return the part that was seen, the truth left and the estimate right."""
    seen = np.isfinite(estimate)
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    pictures = [draw_brightness(np.where(seen, image, np.nan)[part].astype(np.float32)) for image in (truth, estimate)]
    gap = np.zeros((pictures[0].shape[0], 12, 4), np.uint8)
    return np.concatenate([pictures[0], gap, pictures[1]], axis=1)


def rotation_error_deg(result: SlamResult) -> float:
    """Return the RMS error of a run, after the best rotation of its world."""
    assert result.evaluation is not None
    return result.evaluation.absolute_best_fit_rms_deg


def measure(scene: str, sensor: str, seed: int, options: argparse.Namespace, config: Config) -> None:
    """Simulate a recording unless it is there, run it, print a row."""
    settings = SimulationSettings(scene=scene, sensor=SENSORS[sensor], duration_s=options.duration, seed=seed)
    simulation, name = Simulation(settings), f"{Path(scene).stem}_{sensor}_{options.duration:g}s_seed{seed}"
    path = options.folder / f"{name}.npz"
    if not path.exists():
        make_recording(simulation, path)
    recording = open_recording(path)
    began = time.process_time()
    result = Slam(config).run(recording)
    ran = time.process_time()
    result = paint(result, recording.require_camera(), config)
    run_s, painting_s = ran - began, time.process_time() - ran
    assert result.brightness is not None
    estimate = result.brightness.log_intensity
    truth = true_brightness(simulation, result, estimate.shape[::-1])
    errors, timing = compare_brightness(estimate, truth), result.timing
    correlation, ssim = TARGETS[sensor]
    verdict = "yes" if errors.correlation >= correlation and errors.ssim >= ssim else "no"
    print(
        f"| {name} | {result.events / 1e6:.1f} | {errors.correlation:.3f} | {errors.ssim:.3f} | {verdict} | "
        f"{detail_correlation(estimate, simulation, result):.3f} | "
        f"{result.brightness.threshold_ratio:.3f} | {1e9 * painting_s / result.events:.1f} | "
        f"{1e9 * run_s / result.events:.0f} | "
        f"{100 * timing.painting_s / (timing.wall_s - timing.painting_s):.0f} % |",
        flush=True,
    )
    if options.refinements:
        told = [f"none {rotation_error_deg(result):.4f} ({run_s:.0f} s)"]
        for kind in REFINEMENTS:
            began = time.process_time()
            refined = Slam(config).run(recording, refine=kind)
            told.append(f"{kind} {rotation_error_deg(refined):.4f} ({time.process_time() - began:.0f} s)")
        print(f"{name}: rotation error in degrees (processor time) by refinement: {', '.join(told)}", flush=True)
    if options.pictures:
        cv2.imwrite(str(options.folder / f"{name}.png"), side_by_side(truth, estimate))
    if options.remove:
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("benchmark_intensity"), help="where recordings are kept")
    parser.add_argument("--scenes", nargs="+", default=["boxes", "poster"], help="names, or panoramas as images")
    parser.add_argument("--sensors", nargs="+", default=["ideal", "davis"], choices=sorted(SENSORS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--duration", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings, such as intensity.scale=2")
    parser.add_argument("--refinements", action="store_true", help="the rotation error with each kind of --refine")
    parser.add_argument("--pictures", action="store_true", help="write the truth beside the estimate")
    parser.add_argument("--remove", action="store_true", help="remove each recording when it is done")
    parser.add_argument("--quick", action="store_true", help="two seconds of one scene")
    options = parser.parse_args()
    if options.quick:
        options.scenes, options.seeds, options.duration = options.scenes[:1], options.seeds[:1], 2.0
    options.folder.mkdir(parents=True, exist_ok=True)
    config = load_config((), options.set)
    warm_up(config, SimulationSettings().camera)
    print(
        "Processor time in ms per million events: of the brightness, and of the run without it; its share of wall time."
    )
    print(
        "| recording | million events | correlation | SSIM | target met | detail | ON/OFF | brightness | run | share |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for sensor in options.sensors:
        for scene in options.scenes:
            for seed in options.seeds:
                measure(scene, sensor, seed, options, config)
    print(f"\nnp.bincount: {1e3 * calibration_us() / EVENTS:.2f} ns per event")


if __name__ == "__main__":
    main()
