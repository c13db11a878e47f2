"""Run a trained network on a recording: a video of the events, the events made sharp, and the flow as colours."""

import argparse
from pathlib import Path

import cv2
import numpy as np

from cmaxslam_fbp import open_recording
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.experiments.flow.batches import make_batch
from cmaxslam_fbp.experiments.flow.pictures import events_picture, flow_picture
from cmaxslam_fbp.experiments.flow.real_slices import sample_without_flow
from cmaxslam_fbp.experiments.flow.training import load_network
from cmaxslam_fbp.experiments.flow.trajectories import flow_of
from cmaxslam_fbp.fbp.torch_module import to_host, torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", type=Path, help="made by train_flow.py")
    parser.add_argument("recording", help="a ROS bag, an ECD folder or .zip, an .npz archive, ...")
    parser.add_argument("video", type=Path, help="an .mp4 file")
    parser.add_argument("--stretch", type=float, default=40.0, metavar="MS", help="what the network sees at once")
    parser.add_argument("--rate", type=float, default=10.0, metavar="HZ", help="pictures per second of the video")
    parser.add_argument("--duration", type=float, metavar="S", help="only the first seconds")
    parser.add_argument("--most", type=float, default=12.0, metavar="PX", help="flow of the strongest colour")
    options = parser.parse_args()

    network, recording = load_network(options.network), open_recording(options.recording)
    events = Events.concatenate(recording.chunks(duration_s=options.duration))
    size, step_ns = recording.sensor_size, round(1e6 * options.stretch)
    starts = range(int(events.t_ns[0]), int(events.t_ns[-1]) - step_ns, step_ns)
    pieces = [piece for start in starts if len(piece := events.between(start, start + step_ns)) > 1]
    samples = [sample_without_flow(piece, size.width, size.height) for piece in pieces]
    if not samples:
        raise SystemExit(f"the recording is shorter than a stretch of {options.stretch:g} ms")
    height, width = samples[0].shape
    video = cv2.VideoWriter(str(options.video), cv2.VideoWriter.fourcc(*"mp4v"), options.rate, (3 * width, height))
    if not video.isOpened():
        raise SystemExit(f"the video {options.video} cannot be written: give an .mp4 file in a folder that exists")
    for sample in samples:
        with torch.no_grad():
            coefficients = network(make_batch([sample]).voxels)
        still, sharp = (events_picture(sample, c) for c in (torch.zeros_like(coefficients), coefficients))
        colours = flow_picture(to_host(flow_of(coefficients)[0]), options.most)[..., ::-1]
        grey = (cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR) for picture in (still, sharp))
        video.write(np.ascontiguousarray(np.hstack([*grey, colours])))
    video.release()
    print(f"{len(samples)} pictures in {options.video}: events, events made sharp, flow")


if __name__ == "__main__":
    main()
