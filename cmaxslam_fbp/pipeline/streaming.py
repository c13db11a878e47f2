"""The poses of a run, each given once, when nothing changes it any more; and the stream of their lines."""

from __future__ import annotations

from bisect import bisect_left
from typing import TextIO

from cmaxslam_fbp.io.trajectory_files import trajectory_lines
from cmaxslam_fbp.pipeline.output import TRAJECTORY_COLUMNS
from cmaxslam_fbp.pipeline.result import SlamResult, sample_trajectory
from cmaxslam_fbp.pipeline.step import Step
from cmaxslam_fbp.trajectory import RotationTrajectory


class SettledPoses:
    """Gives the poses of the trajectory at 200 Hz as they settle, and the others at the end."""

    def __init__(self) -> None:
        self._since_ns: int | None = None  # time of the first pose that was not given

    def new(self, step: Step) -> RotationTrajectory | None:
        """Return the poses that have settled with a window; None where there are fewer than two."""
        if step.settled_ns is None:
            return None
        poses = sample_trajectory(step.stretches(), self._since_ns)
        # The last two stay open: a trajectory has at least two poses.
        count = min(bisect_left(poses.t_ns.tolist(), step.settled_ns), len(poses) - 2)
        if count < 2:
            return None
        self._since_ns = int(poses.t_ns[count])
        return poses.between(poses.start_ns, self._since_ns)

    def rest(self, result: SlamResult) -> RotationTrajectory:
        """Return the poses that are left at the end of a run."""
        return result.trajectory(self._since_ns)


class TrajectoryStream:
    """Writes the lines of `trajectory.txt` to an open file, those of each window when nothing changes them any more."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._poses = file, SettledPoses()
        self._has_header = False

    def on_step(self, step: Step) -> None:
        """Write the poses that have settled with a window."""
        poses = self._poses.new(step)
        if poses is not None:
            self._write(poses)

    def finish(self, result: SlamResult) -> None:
        """Write the poses that are left at the end of a run."""
        self._write(self._poses.rest(result))

    def _write(self, poses: RotationTrajectory) -> None:
        if not self._has_header:
            self._file.write(f"{TRAJECTORY_COLUMNS}\n")
            self._has_header = True
        self._file.writelines(f"{line}\n" for line in trajectory_lines(poses))
        self._file.flush()
