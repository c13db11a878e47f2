"""Events from your own NumPy arrays: put them into an .npz archive with the calibration, and that is a recording."""

import argparse
from pathlib import Path

import numpy as np

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.io.trajectory_files import write_trajectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=Path, help="an .npy file (N, 4): seconds, column, row, polarity")
    parser.add_argument("--size", nargs=2, type=int, default=(240, 180), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--intrinsics", nargs=4, type=float, required=True, metavar=("FX", "FY", "CX", "CY"))
    parser.add_argument("--distortion", nargs="+", type=float, default=(), metavar="K", help="k1 k2 p1 p2 k3")
    options = parser.parse_args()

    t_s, x, y, p = np.load(options.events).T
    archive = options.events.with_suffix(".npz")
    np.savez(
        archive,
        t_ns=np.rint(1e9 * t_s).astype(np.int64),
        x=x.astype(np.uint16),
        y=y.astype(np.uint16),
        p=p > 0,
        width=options.size[0],
        height=options.size[1],
        intrinsics=options.intrinsics,
        distortion=options.distortion,
    )
    result = Slam().run(open_recording(archive))
    write_trajectory(options.events.with_suffix(".txt"), result.trajectory())
    print(f"{archive} is a recording now; its trajectory is in {options.events.with_suffix('.txt')}")


if __name__ == "__main__":
    main()
