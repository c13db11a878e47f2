"""From the brightness of a run: the events that a camera would see while it turns from one time of it to another."""

import argparse
from pathlib import Path

import numpy as np

from cmaxslam_fbp import open_recording
from cmaxslam_fbp.report.map_picture import look
from cmaxslam_fbp.report.run_files import RunFiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("recording", help="the recording that it is of")
    parser.add_argument("--start", type=float, default=0.5, metavar="S", help="when to begin")
    parser.add_argument("--duration", type=float, default=0.02, metavar="S", help="for how long")
    options = parser.parse_args()

    files, recording = RunFiles.read(options.run), open_recording(options.recording)
    if files.log_intensity is None:
        raise SystemExit(f"{options.run} has no intensity.npy; run it again, without --no-intensity")
    times_ns = files.start_ns + np.round(1e9 * (options.start + np.array([0, options.duration]))).astype(np.int64)
    rotations = files.trajectory.rotation_at(times_ns).as_matrix()
    before, after = (look(files.log_intensity, R, recording.require_camera()) for R in rotations)
    # The unit of the log intensity is the threshold: its change is the number of events, with their sign.
    predicted = np.nan_to_num(after - before)

    counted = np.zeros(predicted.shape)
    for events in recording.chunks(options.start, options.duration):
        np.add.at(counted, (events.y, events.x), np.where(events.p == 1, 1, -1))
    print(f"{np.abs(counted).sum():.0f} events that no other cancels, {np.abs(predicted).sum():.0f} predicted")
    print(f"correlation {np.corrcoef(predicted.ravel(), counted.ravel())[0, 1]:.3f}")


if __name__ == "__main__":
    main()
