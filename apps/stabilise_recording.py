"""Take the rotation out of a recording: an image sequence in which the scene stands still, whatever the camera does."""

import argparse
from pathlib import Path

import cv2

from cmaxslam_fbp import Slam, open_recording
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.report.event_picture import EventPicture
from cmaxslam_fbp.report.map_picture import draw_map, view_camera

FRAME_NS = 20_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", help="a ROS bag, an ECD folder or .zip, or an .npz archive")
    parser.add_argument("out", type=Path, help="folder for the images")
    parser.add_argument("--duration", type=float, metavar="S", help="only the first seconds")
    parser.add_argument("--field", type=float, default=110.0, metavar="DEG", help="what the images see")
    options = parser.parse_args()

    recording = open_recording(options.recording)
    trajectory = Slam().run(recording, duration_s=options.duration).trajectory()
    events = Events.concatenate(recording.chunks(duration_s=options.duration))
    picture = EventPicture(recording.require_camera(), view_camera(640, 480, options.field))
    still = trajectory.rotations.mean().inv()  # the orientation that all images share
    options.out.mkdir(parents=True, exist_ok=True)
    starts = range(trajectory.start_ns, trajectory.end_ns - FRAME_NS, FRAME_NS)
    for number, start_ns in enumerate(starts):
        frame = events.between(start_ns, start_ns + FRAME_NS)
        image = picture.count(frame, still * trajectory.rotation_at(frame.t_ns))
        cv2.imwrite(str(options.out / f"{number:05d}.png"), draw_map(image))
    print(f"{len(starts)} images in {options.out}")


if __name__ == "__main__":
    main()
