"""Velocities as a table in a text file: `velocity.csv`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.frontend.estimate import VelocityEstimate
from cmaxslam_fbp.nanoseconds import NS_PER_S


def write_velocities(path: Path, estimates: Iterable[VelocityEstimate], names: Sequence[str]) -> None:
    """Write one line per estimate, with the recording's own times to the nanosecond.

    `names` are those of the P components of the velocities, with their units. The file appears whole or not at all: it
    is written beside its place and then moved there.
    """
    deviations = [f"std_{name}" for name in names]
    columns = ["t_s", *names, "score", "evaluations", "status", *deviations, "quality", "events"]
    lines = [",".join(columns), *(_line(estimate) for estimate in estimates)]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(
            f"cannot write {path} ({error.strerror or error}); choose a folder that is writable"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _line(estimate: VelocityEstimate) -> str:
    seconds, nanoseconds = divmod(abs(estimate.t_ns), NS_PER_S)
    return ",".join(
        [
            f"{'-' if estimate.t_ns < 0 else ''}{seconds}.{nanoseconds:09d}",
            *(f"{value:.9f}" for value in estimate.velocity),
            f"{estimate.score:.9g}",
            str(estimate.evaluations),
            estimate.status.value,
            *(f"{value:.9f}" for value in estimate.standard_deviations),
            f"{estimate.quality:.6g}",
            str(estimate.events),
        ]
    )
