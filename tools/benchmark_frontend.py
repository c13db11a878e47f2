"""Accuracy and speed of the frontend on simulated recordings, on one core, with the machine's calibration."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.machine import best_us, calibration_us
from cmaxslam_fbp.frontend import VelocityEstimate, VelocityEstimator
from cmaxslam_fbp.frontend.motion_models import FirstOrderRotation
from cmaxslam_fbp.frontend.packet_events import PacketLookup
from cmaxslam_fbp.frontend.warps import Grid, VelocityWarp
from cmaxslam_fbp.simulation import Simulation, SimulationSettings

COUNT = 20_000
_PART_S = 0.3  # for which a part of the work is repeated
SCENES = ("shapes", "boxes", "poster")
# RMS in deg/s per axis on the ECD, from the paper's table of angular velocities; ours on top of it has no row there.
METHODS: list[tuple[str, dict[str, Any], dict[str, float] | None]] = [
    (
        "rect, finite differences, L-BFGS-B",
        {"reconstruction": "none", "solver": "lbfgsb"},
        {"boxes": 44.61, "poster": 47.09, "shapes": 44.47},
    ),
    ("FBP rect, L-BFGS-B", {"solver": "lbfgsb"}, {"boxes": 12.44, "poster": 14.26, "shapes": 15.89}),
    ("FBP rect, trust-ncg", {"solver": "trust_ncg"}, {"boxes": 10.91, "poster": 12.83, "shapes": 23.94}),
    ("FBP rect, newton (default)", {"recovery": True}, None),
    (
        "linear, L-BFGS-B",
        {"kernel": "linear", "reconstruction": "none", "solver": "lbfgsb"},
        {"boxes": 10.21, "poster": 12.58, "shapes": 15.82},
    ),
    (
        "FBP linear, L-BFGS-B",
        {"kernel": "linear", "solver": "lbfgsb"},
        {"boxes": 9.82, "poster": 12.16, "shapes": 15.75},
    ),
    ("linear, newton", {"kernel": "linear", "reconstruction": "none", "recovery": True}, None),
    ("FBP linear, newton", {"kernel": "linear", "recovery": True}, None),
    (
        "FBP rect, likelihood, L-BFGS-B",
        {"score": "negative_binomial", "solver": "lbfgsb"},
        {"boxes": 10.14, "poster": 12.42, "shapes": 14.26},
    ),
    ("FBP rect, likelihood, newton", {"score": "negative_binomial", "recovery": True}, None),
]


@dataclass(frozen=True)
class SimulatedPackets:
    """A simulated recording in memory."""

    simulation: Simulation
    events: Events

    def true_velocities(self, t_ns: IntArray) -> FloatArray:
        """Return the camera's angular velocities (N, 3) in rad/s."""
        return np.asarray(self.simulation.motion.angular_velocities((t_ns - self.simulation.start_ns) * 1e-9))


def simulate(scene: str, duration_s: float, seed: int = 1, peak_speed_deg_s: float = 350.0) -> SimulatedPackets:
    settings = SimulationSettings(scene=scene, duration_s=duration_s, seed=seed, peak_speed_deg_s=peak_speed_deg_s)
    simulation = Simulation(settings)
    return SimulatedPackets(simulation, Events.concatenate([chunk for chunk in simulation.chunks() if len(chunk)]))


def errors_deg_s(recording: SimulatedPackets, estimates: list[VelocityEstimate]) -> FloatArray:
    true = recording.true_velocities(np.array([estimate.t_ns for estimate in estimates]))
    return np.degrees(np.array([estimate.velocity for estimate in estimates]) - true)


def measure_accuracy(recording: SimulatedPackets, settings: dict[str, Any], limit: int) -> dict[str, float]:
    """Return error, evaluations and time of a method; L-BFGS-B and trust-ncg start from zero, as in the paper."""
    merged: dict[str, Any] = {"packets": "count", "recovery": False, "events_per_packet": COUNT} | settings
    config = FrontendConfig(**merged)
    estimates = list(VelocityEstimator(recording.simulation.camera, config).run([recording.events[:limit]]))
    errors = errors_deg_s(recording, estimates)
    return {
        "packets": len(estimates),
        "rms_deg_s": float(np.sqrt((errors**2).mean())),
        "median_deg_s": float(np.median(np.abs(errors))),
        "evaluations": float(np.mean([estimate.evaluations for estimate in estimates])),
        "median_ms": 1e3 * float(np.median([estimate.seconds for estimate in estimates])),
    }


def measure_speed(recording: SimulatedPackets, repeats: int, limit: int) -> dict[str, float]:
    """Return the time per packet of the default: the mean over the packets of each one's shortest run."""
    config = FrontendConfig(packets="count", events_per_packet=COUNT)
    estimator = VelocityEstimator(recording.simulation.camera, config)
    runs = []
    for _ in range(repeats):
        estimator.reset()
        runs.append(list(estimator.run([recording.events[:limit]])))
    seconds = np.min([[estimate.seconds for estimate in run] for run in runs], axis=0)
    return {
        "packets": len(seconds),
        "mean_ms": 1e3 * float(seconds.mean()),
        "median_ms": 1e3 * float(np.median(seconds)),
        "longest_ms": 1e3 * float(seconds.max()),
        "evaluations": float(np.mean([estimate.evaluations for estimate in runs[0]])),
        "hessians": float(np.mean([estimate.hessians for estimate in runs[0]])),
    }


def measure_parts(recording: SimulatedPackets) -> dict[str, float]:
    """Return the time in microseconds of the parts of the work on one packet."""
    camera, config = recording.simulation.camera, FrontendConfig(packets="count", events_per_packet=COUNT)
    packet = list(VelocityEstimator(camera, config).packets([recording.events[: 12 * COUNT]]))[10]
    grid, look_up = Grid.configured(camera, config), PacketLookup(camera)
    objective = ContrastObjective(grid.shape, Variance())
    objective.use(VelocityWarp(FirstOrderRotation(), grid, look_up(packet)))
    theta, steps = np.array([0.5, -0.4, 0.3]), iter(range(10**9))

    def elsewhere() -> FloatArray:  # a new place each time: nothing is kept from the last
        return theta + 1e-6 * next(steps)

    objective.hessian(theta)
    return {
        "look up undistorted points": best_us(lambda: look_up(packet), _PART_S),
        "value": best_us(lambda: objective.value(elsewhere()), _PART_S),
        "value and gradient": best_us(lambda: objective.value_and_gradient(elsewhere()), _PART_S),
        "value, gradient and Hessian": best_us(lambda: objective.hessian(elsewhere()), _PART_S),
        "scatter of the gradient, image known": best_us(lambda: objective.gradient_scatter(theta), _PART_S),
    }


def measure_real_time(recording: SimulatedPackets) -> dict[str, float]:
    """Return how long one velocity per 10 ms from 30,000 events takes, against the length of the recording."""
    config = FrontendConfig(packets="rate", interval_s=0.01, events_per_packet=30_000, max_packet_s=None)
    estimator = VelocityEstimator(recording.simulation.camera, config)
    estimator.estimate(next(iter(estimator.packets([recording.events]))))  # compile
    estimator.reset()
    start = time.perf_counter()
    estimates = list(estimator.run([recording.events]))
    seconds = time.perf_counter() - start
    length_s = float(recording.events.t_ns[-1] - recording.events.t_ns[0]) * 1e-9
    return {
        "million_events_per_s": len(recording.events) / length_s / 1e6,
        "velocities": len(estimates),
        "times_real_time": length_s / seconds,
        "rms_deg_s": float(np.sqrt((errors_deg_s(recording, estimates) ** 2).mean())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=4.0, help="length of the simulated recordings in seconds")
    parser.add_argument("--packets", type=int, default=200, help="at most so many packets per scene for the methods")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the fastest counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    recordings = {scene: simulate(scene, options.duration) for scene in SCENES}
    limit = options.packets * COUNT
    figures: dict[str, Any] = {"bincount_us": calibration_us(COUNT)}
    figures["speed"] = {s: measure_speed(r, options.repeats, limit) for s, r in recordings.items()}
    figures["parts_us"] = measure_parts(recordings["boxes"])
    figures["real_time"] = measure_real_time(simulate("poster", options.duration, 4, 520.0))
    figures["accuracy"] = {
        name: {s: measure_accuracy(r, settings, limit) for s, r in recordings.items()} for name, settings, _ in METHODS
    }
    figures["bincount_us"] = min(figures["bincount_us"], calibration_us(COUNT))
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        report(figures)


def report(figures: dict[str, Any]) -> None:
    """Print the figures for people."""
    unit_us = figures["bincount_us"]
    print(f"calibration: one np.bincount pass over {COUNT:,} events takes {unit_us:.1f} us\n")
    print(f"speed of the default (FBP rect, variance, newton), one core, {COUNT:,} events per packet, 200 x 150 grid")
    for scene, speed in figures["speed"].items():
        theirs = figures["accuracy"]["FBP rect, L-BFGS-B"][scene]["evaluations"]
        print(
            f"  {scene:7s} {speed['packets']:4d} packets: mean {speed['mean_ms']:.2f} ms = "
            f"{1e3 * speed['mean_ms'] / unit_us:.0f} passes, median {speed['median_ms']:.2f} ms, longest "
            f"{speed['longest_ms']:.1f} ms; {speed['evaluations']:.2f} evaluations (L-BFGS-B: {theirs:.1f}) "
            f"and {speed['hessians']:.2f} Hessians"
        )
    print("\nparts of the work on one packet")
    for part, us in figures["parts_us"].items():
        print(f"  {part:38s} {us:7.1f} us = {us / unit_us:5.1f} passes = {1e3 * us / COUNT:5.2f} ns per event")
    live = figures["real_time"]
    print(
        f"\none velocity per 10 ms from 30,000 events, {live['million_events_per_s']:.1f} Mev/s: "
        f"{live['times_real_time']:.1f} times real time, {live['velocities']} velocities, "
        f"RMS {live['rms_deg_s']:.2f} deg/s"
    )
    print("\naccuracy: RMS (median) in deg/s per axis, evaluations, median ms per packet; [the paper on the ECD]")
    for name, _, paper in METHODS:
        cells = []
        for scene, result in figures["accuracy"][name].items():
            known = f" [{paper[scene]:.1f}]" if paper else ""
            cells.append(
                f"{scene} {result['rms_deg_s']:.2f} ({result['median_deg_s']:.2f}), {result['evaluations']:.1f}, "
                f"{result['median_ms']:.2f} ms{known}"
            )
        print(f"  {name:36s} " + " | ".join(cells))


if __name__ == "__main__":
    main()
