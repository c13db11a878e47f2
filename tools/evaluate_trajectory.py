"""Compare an estimated trajectory with the ground truth, both as text files (TUM, or the ECD's groundtruth.txt)."""

from __future__ import annotations

import argparse
import json
import sys

from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.evaluation import evaluate, evaluation_table
from cmaxslam_fbp.io.trajectory_files import read_imu, read_trajectory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("estimate", help="trajectory to judge: lines of t tx ty tz qx qy qz qw")
    parser.add_argument("ground_truth", help="reference trajectory, in the same form")
    parser.add_argument("--start", type=float, metavar="S", help="seconds from the estimate's first pose")
    parser.add_argument("--duration", type=float, metavar="S", help="seconds to compare (the paper uses 30)")
    parser.add_argument("--imu", help="gyroscope as the reference of the angular velocity: t ax ay az gx gy gz")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    try:
        evaluation = evaluate(
            read_trajectory(options.estimate),
            read_trajectory(options.ground_truth),
            start_s=options.start,
            duration_s=options.duration,
            reference_velocities=read_imu(options.imu).gyroscope if options.imu else None,
        )
    except CmaxSlamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(evaluation.to_dict(), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        Console().print(evaluation_table(evaluation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
