"""From a recording to orientation and map, in Python: the shortest useful program."""

import argparse

import cv2
import numpy as np

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.io.trajectory_files import write_trajectory
from cmaxslam_fbp.report.map_picture import draw_map


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", help="a ROS bag, an ECD folder or .zip, or an .npz archive")
    parser.add_argument("--duration", type=float, metavar="S", help="only the first seconds")
    options = parser.parse_args()

    result = Slam().run(open_recording(options.recording), duration_s=options.duration)

    trajectory = result.trajectory()
    speeds = np.linalg.norm(trajectory.angular_velocity_at(trajectory.t_ns), axis=1)
    print(f"{result.events:,} events in {result.duration_s:.2f} s, {result.real_time_factor:.2f} of real time")
    print(f"mean speed {np.degrees(speeds.mean()):.1f} deg/s")
    if result.evaluation is not None:
        print(f"error {result.evaluation.absolute_best_fit_rms_deg:.3f} deg RMS")
    write_trajectory("trajectory.txt", trajectory)
    cv2.imwrite("panorama.png", draw_map(result.panorama))


if __name__ == "__main__":
    main()
