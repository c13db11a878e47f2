"""Plot orientation, angular velocity and error of one or several trajectories (TUM files or run folders) to a PNG."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.io.trajectory_files import read_trajectory
from cmaxslam_fbp.report.trajectory_plots import PARTS, plot_trajectories
from cmaxslam_fbp.trajectory import RotationTrajectory


def read(path: Path) -> tuple[str, RotationTrajectory]:
    """Return a trajectory and its name: a file's, or that of a run folder."""
    if path.is_dir():
        return path.resolve().name, read_trajectory(path / "trajectory.txt")
    return path.stem, read_trajectory(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trajectories", nargs="+", type=Path, help="TUM files, or folders of runs")
    parser.add_argument("-o", "--out", type=Path, default=Path("trajectory.png"), help="picture to write (.png)")
    parser.add_argument("-g", "--ground-truth", type=Path, help="TUM file or groundtruth.txt to compare with")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to plot; all by default")
    options = parser.parse_args()
    try:
        truth = read_trajectory(options.ground_truth) if options.ground_truth else None
        estimates = dict(read(path) for path in options.trajectories)
        options.out.write_bytes(plot_trajectories(estimates, truth, tuple(options.parts)))
    except (CmaxSlamError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
