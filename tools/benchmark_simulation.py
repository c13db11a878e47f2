"""Measure the simulator: events per second of wall time on one core, for each procedural scene.

    python tools/benchmark_simulation.py [--duration 5] [--repeats 3] [--camera davis240c]

The calibration is the time of one plain `np.bincount` over the same events' pixels: the ratio to it compares
machines. On a machine that is busy with other work the processor time says more than the wall time. Preparing the
scene happens once per recording and is shown on its own.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.machine import best_us
from cmaxslam_fbp.geometry.camera import davis240c, dvxplorer
from cmaxslam_fbp.simulation import Simulation, SimulationSettings
from cmaxslam_fbp.simulation.scenes import SCENES

CAMERAS = {"davis240c": davis240c, "dvxplorer": dvxplorer}


def measure(scene: str, camera: str, duration_s: float, repeats: int) -> None:
    """Print one line for a scene."""
    simulation = Simulation(SimulationSettings(scene=scene, camera=CAMERAS[camera](), duration_s=duration_s))
    start_s = time.perf_counter()
    events = simulation.sensor().advance(simulation.blocks[0], np.eye(3)[None].repeat(simulation.blocks[0].steps, 0))
    prepared_s = time.perf_counter() - start_s
    wall_s, cpu_s = [], []
    for _ in range(repeats):
        start_s, cpu_start_s = time.perf_counter(), time.process_time()
        pieces = list(simulation.chunks())
        wall_s.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - cpu_start_s)
        events = Events.concatenate(pieces)
    best_s, best_cpu_s = min(wall_s), min(cpu_s)
    renderings = sum(block.steps for block in simulation.blocks)
    pixels = events.y.astype(np.int64) * simulation.camera.width + events.x
    calibration_s = 1e-6 * best_us(lambda: np.bincount(pixels), 0.1)
    millions = len(events) / 1e6
    print(
        f"{scene:8s} {millions / best_s:6.2f} Mev/s of wall time, {millions / best_cpu_s:6.2f} of processor time | "
        f"mean rate {millions / duration_s:5.2f} Mev/s | {renderings / duration_s:6.0f} renderings/s | "
        f"best of {repeats}: {best_s:.2f} s, scene prepared in {prepared_s:.2f} s | "
        f"bincount of {millions:.2f} M events {calibration_s * 1e3:.2f} ms, ratio {best_cpu_s / calibration_s:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--duration", type=float, default=5.0, help="seconds of recording")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--camera", choices=CAMERAS, default="davis240c")
    arguments = parser.parse_args()
    for scene in SCENES:
        measure(scene, arguments.camera, arguments.duration, arguments.repeats)


if __name__ == "__main__":
    main()
