"""One method on the packets of one sequence: errors, times, and how often the optimiser ended abnormally."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.choices import MODELS, SOLVERS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.contrast.solvers.solver import Solution, Status
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.experiments.methods import OUR_METHOD, frontend_config
from cmaxslam_fbp.experiments.packet_sets import PacketSet, blocks_of, read_packets
from cmaxslam_fbp.experiments.sequences import StudySequence
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.frontend.objectives import make_objective, with_gradient
from cmaxslam_fbp.frontend.packet_events import PacketLookup
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid, VelocityWarp
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.rows.row import Row, Values

LEFT_THE_IMAGE = 0.5  # an image that holds fewer of the events than this part is not that of a velocity


@dataclass(frozen=True)
class Outcome:
    """What a method says of one packet."""

    velocity: FloatArray
    is_abnormal: bool
    status: str
    evaluations: int
    hessians: int
    seconds: float


class PacketOptimiser:
    """The paper's procedure: from the result of the packet before, with nothing else around the optimiser.

    A packet ends abnormally where the score or the velocity is not finite, the velocity is beyond what is plausible
    (`max_speed`), or most events have left the image. It then counts as zero velocity, and the next one starts there.
    """

    def __init__(self, camera: Camera, config: FrontendConfig) -> None:
        self._config = config
        self._model = MODELS[config.model]()
        self._grid = Grid.configured(camera, config)
        self._look_up = PacketLookup(camera)
        self._objective = make_objective(self._grid.shape, config)
        self._ascended = with_gradient(self._objective, config)
        self._solver = SOLVERS[config.solver]()
        self._still = self._start = np.zeros(self._model.parameter_count)

    def begin(self, velocity: FloatArray) -> None:
        """Start the next packet from this velocity of the camera."""
        self._start = CAMERA_SIGN * velocity

    def __call__(self, packet: Packet) -> Outcome:
        """Return the velocity of a packet."""
        began = time.perf_counter()
        events = self._look_up(packet)
        self._objective.use(VelocityWarp(self._model, self._grid, events))
        unit = self._grid.speed_of_one_bin(events.reach_s)
        solution = self._solver.maximise(self._ascended, self._start, unit=unit)
        seconds = time.perf_counter() - began
        is_abnormal = self._is_abnormal(solution, len(events))
        self._start = self._still if is_abnormal else solution.parameters
        return Outcome(
            velocity=CAMERA_SIGN * self._start,
            is_abnormal=is_abnormal,
            status=solution.status.value,
            evaluations=solution.evaluations,
            hessians=solution.hessians,
            seconds=seconds,
        )

    def _is_abnormal(self, solution: Solution, count: int) -> bool:
        if solution.status is Status.DEGENERATE or not np.isfinite(solution.score):
            return True
        if not np.linalg.norm(solution.parameters) <= self._config.max_speed:
            return True
        self._objective.make_image(solution.parameters)
        return bool(self._objective.image.sum() < LEFT_THE_IMAGE * count)


class OurEstimator:
    """Our frontend as users have it: prediction, coarser grids and recovery around Newton's method."""

    def __init__(self, camera: Camera, config: FrontendConfig) -> None:
        self._estimator = VelocityEstimator(camera, config.model_copy(update={"recovery": True}))

    def begin(self, velocity: FloatArray) -> None:
        """Forget the packets before; our estimator finds its start itself."""
        self._estimator.reset()

    def __call__(self, packet: Packet) -> Outcome:
        """Return the velocity of a packet."""
        estimate = self._estimator.estimate(packet)
        return Outcome(
            velocity=estimate.velocity,
            is_abnormal=not estimate.status.is_measured,
            status=estimate.status.value,
            evaluations=estimate.evaluations,
            hessians=estimate.hessians,
            seconds=estimate.seconds,
        )


def velocity_row(sequence: StudySequence, packets: Values, method: dict[str, str], score: str, model: str) -> Row:
    """Return the row of one method and score on the packets of one sequence."""
    settings = {**sequence.described, "model": model, "score": score, "method": method, "set": packets["path"]}
    chosen = "-".join(method.values())
    return Row(f"{sequence.name} {score} {chosen}", measure, settings)


def measure(settings: Mapping[str, Any], out: Path) -> Values:
    """Run a method over all blocks of packets."""
    packet_set = read_packets(out / settings["set"])
    config = frontend_config(settings["method"], settings["score"], settings["model"])
    is_ours = settings["method"] == OUR_METHOD
    run = (OurEstimator if is_ours else PacketOptimiser)(packet_set.camera, config)
    run(packet_set.packets[0])  # the first call compiles
    outcomes: list[Outcome] = []
    for start, numbers in blocks_of(packet_set):
        run.begin(start)
        outcomes.extend(run(packet_set.packets[number]) for number in numbers)
    is_angular = MODELS[settings["model"]].kind == "angular"
    return summarise(outcomes, packet_set, np.degrees(1.0) if is_angular else 1.0)


def summarise(outcomes: list[Outcome], packet_set: PacketSet, unit: float) -> Values:
    """Return the figures of a row; errors are in units of the reference times `unit`."""
    found = np.array([outcome.velocity for outcome in outcomes])
    errors = unit * (found - packet_set.references)
    milliseconds = 1e3 * np.array([outcome.seconds for outcome in outcomes])
    power = float((found**2).sum())
    depth = float((found * packet_set.references).sum()) / power if power else 1.0
    at_depth = unit * (depth * found - packet_set.references)
    statuses = [outcome.status for outcome in outcomes]
    return {
        "packets": len(outcomes),
        "abnormal": sum(outcome.is_abnormal for outcome in outcomes),
        "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
        "rms_per_axis": float(np.sqrt((errors**2).mean())),
        "rms_vector": float(np.sqrt((errors**2).sum(axis=1).mean())),
        "median_absolute": float(np.median(np.abs(errors))),
        "best_factor": depth,
        "rms_per_axis_at_best_factor": float(np.sqrt((at_depth**2).mean())),
        "mean_ms": float(milliseconds.mean()),
        "median_ms": float(np.median(milliseconds)),
        "evaluations": float(np.mean([outcome.evaluations for outcome in outcomes])),
        "hessians": float(np.mean([outcome.hessians for outcome in outcomes])),
    }
