"""What a recording contains, in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.events import Defects, Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.nanoseconds import NS_PER_S

PEAK_WINDOW_NS = 10_000_000


@dataclass(frozen=True)
class Summary:
    """Figures of a recording or a range of it; the peak rate is that of the busiest of consecutive 10 ms windows."""

    path: str
    topics: list[tuple[str, str, int]]
    width: int
    height: int
    events: int
    start_ns: int
    duration_s: float
    mean_rate_ev_s: float
    peak_rate_ev_s: float
    positive_fraction: float
    calibration: Camera | None
    ground_truth_poses: int
    ground_truth_duration_s: float
    imu_samples: int
    defects: Defects


def summarize(
    recording: Recording,
    start_s: float | None = None,
    duration_s: float | None = None,
    progress: Callable[[Events], None] | None = None,
) -> Summary:
    """Read a recording, or a range of it, once, and count."""
    stream = recording.chunks(start_s, duration_s)
    events = positive = window_events = busiest = 0
    first_ns = last_ns = window = -1
    for chunk in stream:
        if events == 0:
            first_ns = int(chunk.t_ns[0])
        last_ns = int(chunk.t_ns[-1])
        events += len(chunk)
        positive += int(chunk.p.sum())
        slots = (chunk.t_ns - first_ns) // PEAK_WINDOW_NS
        starts = np.flatnonzero(np.diff(slots, prepend=slots[0] - 1))
        counts = np.diff(starts, append=len(slots))
        if slots[0] == window:  # goes on from the chunk before
            counts[0] += window_events
        busiest = max(busiest, int(counts.max()))
        window, window_events = int(slots[-1]), int(counts[-1])
        if progress is not None:
            progress(chunk)
    span_s = (last_ns - first_ns) / NS_PER_S
    poses, imu = recording.ground_truth, recording.imu
    return Summary(
        path=str(recording.path),
        topics=recording.topics(),
        width=recording.sensor_size.width,
        height=recording.sensor_size.height,
        events=events,
        start_ns=first_ns,
        duration_s=span_s,
        mean_rate_ev_s=events / span_s if span_s > 0 else 0.0,
        peak_rate_ev_s=busiest / (PEAK_WINDOW_NS / NS_PER_S),
        positive_fraction=positive / events,
        calibration=recording.camera,
        ground_truth_poses=0 if poses is None else len(poses),
        ground_truth_duration_s=0.0 if poses is None else (poses.end_ns - poses.start_ns) / NS_PER_S,
        imu_samples=0 if imu is None else len(imu),
        defects=stream.defects,
    )
