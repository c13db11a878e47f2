"""What a run holds on to does not grow with the recording, but for a few bytes per packet and window."""

import tracemalloc

import numpy as np

from cmaxslam_fbp import Slam, load_config
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io import Recording


def noise(seconds):
    """Chunks of a still camera's noise: 5,000 events per second."""
    random = np.random.default_rng(0)
    for k in range(10 * seconds):
        t_ns = np.sort(random.integers(0, 100_000_000, 500)) + k * 100_000_000
        x, y = random.integers(0, 240, 500), random.integers(0, 180, 500)
        yield Events(t_ns.astype(np.int64), x.astype("u2"), y.astype("u2"), (x % 2).astype("u1"))


def test_a_minute_takes_hardly_more_memory_than_a_quarter_of_it():
    recording = Recording.from_events(list(noise(60)), camera=davis240c())
    held = []

    def look(step):
        if step.recording_s > 15 * (len(held) + 1):
            held.append(tracemalloc.get_traced_memory()[0])

    config = load_config([], ["frontend.interval_s=0.01", "events.time_lapse=1"])
    Slam(config).run(recording, duration_s=1.0)  # what is compiled and kept at the first call
    tracemalloc.start()
    try:
        result = Slam(config).run(recording, on_step=look)
    finally:
        tracemalloc.stop()
    assert len(result.velocities) > 5900
    # 3,000 packets and 300 windows, and a few passages for the parallax; the estimates alone would be three megabytes.
    assert held[2] - held[0] < 800_000
