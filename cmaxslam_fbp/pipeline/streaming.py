"""The trajectory as a stream of lines."""

from __future__ import annotations

from typing import TextIO

from cmaxslam_fbp.io.trajectory_files import trajectory_lines
from cmaxslam_fbp.pipeline.output import TRAJECTORY_COLUMNS
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.settled_poses import SettledPoses
from cmaxslam_fbp.pipeline.step import Step
from cmaxslam_fbp.trajectory import RotationTrajectory


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
