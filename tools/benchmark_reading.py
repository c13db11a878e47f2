"""Reading speed of a ROS 1 bag on one core, against typed deserialisation, with the machine's calibration."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.writing import write_recording

SIZE = SensorSize(240, 180)


def make_bag(path: Path, count: int, rate_ev_s: float, compression: str) -> None:
    """Write random events; their content does not change how long they take to read."""
    random = np.random.default_rng(0)

    def chunks() -> Any:
        step = 1_000_000
        for first in range(0, count, step):
            n = min(step, count - first)
            t_ns = (
                1_468_941_032_000_000_000 + ((first + np.arange(n)) * (1e9 / rate_ev_s)).astype(np.int64) // 1000 * 1000
            )
            x, y = random.integers(0, 240, n).astype(np.uint16), random.integers(0, 180, n).astype(np.uint16)
            yield Events(t_ns, x, y, random.integers(0, 2, n).astype(np.uint8))

    source: Any = SimpleNamespace(sensor_size=SIZE, camera=None, ground_truth=None, imu=None)
    write_recording(source, chunks(), path, compression=compression)


def best_of(repeats: int, work: Callable[[], int]) -> tuple[float, int]:
    """Return the shortest time in seconds and the result."""
    best, result = np.inf, 0
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def read_ours(path: Path) -> int:
    return sum(len(events) for events in open_recording(path).chunks())


def read_typed(path: Path, limit: int) -> int:
    """Read with rosbags' typed deserialisation, up to a number of events."""
    from rosbags.highlevel import AnyReader

    count = 0
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            message: Any = reader.deserialize(data, connection.msgtype)
            count += len(np.array([(e.ts.sec * 10**9 + e.ts.nanosec, e.x, e.y, e.polarity) for e in message.events]))
            if count >= limit:
                break
    return count


def calibrate(count: int) -> float:
    """Return the time in seconds of one plain `np.bincount` over as many pixel indices."""
    indices = np.random.default_rng(0).integers(0, SIZE.width * SIZE.height, count)
    return best_of(5, lambda: len(np.bincount(indices, minlength=SIZE.width * SIZE.height)))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000_000, help="size of the bag")
    parser.add_argument("--rate", type=float, default=3e6, help="events per second: 3e6 are messages of 30,000")
    parser.add_argument("--compression", choices=["none", "bz2", "lz4"], default="none")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmark.bag"
        make_bag(path, options.events, options.rate, options.compression)
        ours_s, count = best_of(3, lambda: read_ours(path))
        typed_s, typed_count = best_of(1, lambda: read_typed(path, 500_000))
        megabytes = path.stat().st_size / 1e6
    assert count == options.events
    unit_s = calibrate(count)
    figures = {
        "events": count,
        "bag_megabytes": megabytes,
        "bincount_ns_per_event": 1e9 * unit_s / count,
        "ours_million_events_per_s": count / ours_s / 1e6,
        "ours_bincount_passes": ours_s / unit_s,
        "typed_million_events_per_s": typed_count / typed_s / 1e6,
        "times_faster_than_typed": (count / ours_s) / (typed_count / typed_s),
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"bag: {count:,} events, {megabytes:.0f} MB, compression {options.compression}")
    print(f"calibration: one np.bincount pass takes {figures['bincount_ns_per_event']:.3f} ns per event")
    print(
        f"open_recording(...).chunks(): {figures['ours_million_events_per_s']:.1f} Mev/s "
        f"({figures['ours_bincount_passes']:.2f} bincount passes)"
    )
    print(f"typed deserialisation: {figures['typed_million_events_per_s']:.3f} Mev/s")
    print(f"ratio: {figures['times_faster_than_typed']:.0f}")


if __name__ == "__main__":
    main()
