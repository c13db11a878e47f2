"""The trajectory as a stream: each pose is written once, when it has settled."""

from __future__ import annotations

from bisect import bisect_left
from typing import TextIO

from cmaxslam_fbp.io.trajectory_files import trajectory_lines
from cmaxslam_fbp.pipeline.output import TRAJECTORY_COLUMNS
from cmaxslam_fbp.pipeline.result import SlamResult, sample_trajectory
from cmaxslam_fbp.pipeline.slam import Step
from cmaxslam_fbp.trajectory import RotationTrajectory


class TrajectoryStream:
    """Writes the lines of `trajectory.txt` to an open file, those of each window when nothing changes them any more."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._since_ns: int | None = None  # time of the first pose that is not written

    def on_step(self, step: Step) -> None:
        """Write the poses that have settled with a window."""
        if step.settled_ns is not None:
            poses = sample_trajectory(step.stretches(), self._since_ns)
            # The last two stay open: a trajectory has at least two poses.
            count = min(bisect_left(poses.t_ns.tolist(), step.settled_ns), len(poses) - 2)
            if count > 0:
                self._write(poses, count)
                self._since_ns = int(poses.t_ns[count])

    def finish(self, result: SlamResult) -> None:
        """Write the poses that are left at the end of a run."""
        poses = result.trajectory(self._since_ns)
        self._write(poses, len(poses))

    def _write(self, poses: RotationTrajectory, count: int) -> None:
        if self._since_ns is None:
            self._file.write(f"{TRAJECTORY_COLUMNS}\n")
        self._file.writelines(f"{line}\n" for line in trajectory_lines(poses)[:count])
        self._file.flush()
