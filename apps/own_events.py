"""Events from your own NumPy arrays: with the calibration they are a recording, without any file."""

import argparse
from pathlib import Path

import numpy as np

from cmaxslam_fbp import Camera, Events, Recording, Slam
from cmaxslam_fbp.io.trajectory_files import write_trajectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=Path, help="an .npy file (N, 4): seconds, column, row, polarity")
    parser.add_argument("--size", nargs=2, type=int, default=(240, 180), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--intrinsics", nargs=4, type=float, required=True, metavar=("FX", "FY", "CX", "CY"))
    parser.add_argument("--distortion", nargs="+", type=float, default=(), metavar="K", help="k1 k2 p1 p2 k3")
    options = parser.parse_args()

    t_s, x, y, p = np.load(options.events).T
    (width, height), (fx, fy, cx, cy) = options.size, options.intrinsics
    camera = Camera(width, height, fx, fy, cx, cy, tuple(options.distortion))
    recording = Recording.from_events(Events.from_arrays(t_s, x, y, p), camera=camera, name=str(options.events))
    trajectory = Slam().run(recording).trajectory()
    write_trajectory(options.events.with_suffix(".txt"), trajectory)
    print(f"{len(trajectory)} orientations are in {options.events.with_suffix('.txt')}")


if __name__ == "__main__":
    main()
