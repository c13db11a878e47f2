"""Velocities as a table in a text file: `velocity.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cmaxslam_fbp.frontend.estimate import VelocityEstimate
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.trajectory_files import format_seconds


def write_velocities(path: Path, estimates: Iterable[VelocityEstimate], names: Sequence[str]) -> None:
    """Write one line per estimate, with the recording's own times to the nanosecond.

    `names` are those of the P components of the velocities, with their units.
    """
    deviations = [f"std_{name}" for name in names]
    columns = ["t_s", *names, "score", "evaluations", "status", *deviations, "quality", "events"]
    lines = [",".join(columns), *(_line(estimate) for estimate in estimates)]
    write_file(path, "\n".join(lines) + "\n", make_folder=True)


def _line(estimate: VelocityEstimate) -> str:
    return ",".join(
        [
            format_seconds(estimate.t_ns),
            *(f"{value:.9f}" for value in estimate.velocity),
            f"{estimate.score:.9g}",
            str(estimate.evaluations),
            estimate.status.value,
            *(f"{value:.9f}" for value in estimate.standard_deviations),
            f"{estimate.quality:.6g}",
            str(estimate.events),
        ]
    )
