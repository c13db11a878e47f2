"""Reading speed of every format on one core, with the machine's calibration; ROS bags against typed deserialisation."""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import savemat

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.text.event_text import format_event_text
from cmaxslam_fbp.io.writing import write_recording

SIZE = SensorSize(240, 180)
RAW_HEADER = b"% evt {0}\n% geometry 240x180\n% end\n"
Words = npt.NDArray[Any]


def make_events(count: int, rate_ev_s: float) -> Events:
    """Return random events; their content hardly changes how long they take to read."""
    random = np.random.default_rng(0)
    t_ns = (np.arange(count) * (1e9 / rate_ev_s)).astype(np.int64) // 1000 * 1000
    x, y = (random.integers(0, end, count).astype(np.uint16) for end in SIZE)
    return Events(t_ns, x, y, random.integers(0, 2, count).astype(np.uint8))


def written(path: Path, events: Events, compression: str = "none") -> Path:
    """Write a file of one of the formats that the package writes."""
    source: Any = SimpleNamespace(sensor_size=SIZE, camera=None, ground_truth=None, imu=None)
    parts = (events[first : first + 1_000_000] for first in range(0, len(events), 1_000_000))
    write_recording(source, parts, path, compression=compression)
    return path


def evt3_words(events: Events) -> Words:
    """Return words of single events: a time where it changes, a row, a column."""
    t_us = events.t_ns // 1000
    words = np.zeros((len(events), 4), np.uint16)
    words[:, 0] = 0x8000 | (t_us >> 12) & 0xFFF
    words[:, 1] = 0x6000 | t_us & 0xFFF
    words[:, 2] = events.y
    words[:, 3] = 0x2000 | events.p.astype(np.uint16) << 11 | events.x
    needed = np.ones(words.shape, bool)
    needed[1:, 0] = np.diff(t_us >> 12) != 0
    needed[1:, 1] = np.diff(t_us) != 0
    return words[needed]


def evt2_words(events: Events, *, wide: bool = False) -> Words:
    """Return words of single events: the high part of the time where it changes, and the event."""
    t_us = events.t_ns // 1000
    words = np.zeros((len(events), 2, 2), np.uint32)  # two words, each with the pixels of EVT 2.1
    words[:, 0, 1] = 0x8 << 28 | t_us >> 6
    base = events.x & ~np.uint16(31) if wide else events.x
    place = events.p.astype(np.int64) << 28 | (t_us & 0x3F) << 22 | base.astype(np.int64) << 11 | events.y
    words[:, 1, 1] = place
    words[:, 1, 0] = 1 << (events.x & 31).astype(np.int64)
    needed = np.ones((len(events), 2), bool)
    needed[1:, 0] = np.diff(t_us >> 6) != 0
    return words[needed] if wide else words[needed][:, 1]


def libcaer_words(events: Events) -> Words:
    place = events.x.astype(np.uint32) << 17 | events.y.astype(np.uint32) << 2 | events.p.astype(np.uint32) << 1 | 1
    return np.column_stack([place, events.t_ns // 1000]).astype("<u4")


def packet_bag(path: Path, events: Events, encoding: str, encode: Callable[[Events], Words]) -> Path:
    """Write a ROS 1 bag of event packets of ten milliseconds."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    kind, store = "event_camera_msgs/msg/EventPacket", get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg("uint8[] events\n", kind))  # the reader does not look at the definition
    edges = [0, *(np.flatnonzero(np.diff(events.t_ns // 10_000_000)) + 1).tolist(), len(events)]
    name = encoding.encode()
    with Writer(path) as writer:
        connection = writer.add_connection("/events", kind, typestore=store)
        for number, (first, last) in enumerate(pairwise(edges)):
            data = encode(events[first:last]).tobytes()
            front = struct.pack("<IIII", number, 0, 0, 0) + struct.pack("<IIQQI", 180, 240, number, 0, len(name))
            writer.write(connection, number, front + name + struct.pack("<BI", 0, len(data)) + data)
    return path


def in_bytes(path: Path, *parts: bytes | Words) -> Path:
    with path.open("wb") as file:
        for part in parts:
            file.write(part if isinstance(part, bytes) else part.tobytes())
    return path


def es_bytes(events: Events) -> Words:
    """Return five bytes an event; steps of time are below 127 us."""
    records = np.empty(len(events), np.dtype([("step", "u1"), ("x", "<u2"), ("y", "<u2")]))
    records["step"] = np.diff(events.t_ns // 1000, prepend=0) << 1 | events.p
    records["x"], records["y"] = events.x, SIZE.height - 1 - events.y
    return records


def aedat2_words(events: Events) -> Words:
    columns, rows = (SIZE.width - 1 - events.x).astype(np.int64), (SIZE.height - 1 - events.y).astype(np.int64)
    address = rows << 22 | columns << 12 | events.p.astype(np.int64) << 11
    return np.column_stack([address, events.t_ns // 1000]).astype(">u4")


def make_files(folder: Path, events: Events, compression: str) -> Iterator[tuple[str, Path]]:
    """Yield a name and a file of each format."""
    t_us = (events.t_ns // 1000).astype("<u4")
    dat = np.column_stack([t_us, events.x | events.y.astype(np.uint32) << 14 | events.p.astype(np.uint32) << 28])
    yield "ROS 1 bag, EventArray", written(folder / "a.bag", events, compression)
    yield "ROS 1 bag, evt3", packet_bag(folder / "evt3.bag", events, "evt3", evt3_words)
    yield "ROS 1 bag, libcaer", packet_bag(folder / "libcaer.bag", events, "libcaer", libcaer_words)
    yield "RAW, EVT 3.0", in_bytes(folder / "3.raw", RAW_HEADER.replace(b"{0}", b"3.0"), evt3_words(events))
    yield "RAW, EVT 2.1", in_bytes(folder / "21.raw", RAW_HEADER.replace(b"{0}", b"2.1"), evt2_words(events, wide=True))
    yield "RAW, EVT 2.0", in_bytes(folder / "2.raw", RAW_HEADER.replace(b"{0}", b"2.0"), evt2_words(events))
    yield "DAT", in_bytes(folder / "a.dat", b"% Version 2\n% Height 180\n% Width 240\n\x0c\x08", dat.astype("<u4"))
    yield "ES", in_bytes(folder / "a.es", b"Event Stream\2\0\0\1" + struct.pack("<HH", *SIZE), es_bytes(events))
    yield "AEDAT 4 (lz4)", written(folder / "a.aedat4", events)
    header = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DAVIS240C\r\n#!END-HEADER\r\n"
    packets: list[bytes | Words] = [header]
    for first in range(0, len(events), 8192):
        words = libcaer_words(events[first : first + 8192])
        packets += [struct.pack("<HHIIIIII", 1, 1, 8, 4, 0, len(words), len(words), len(words)), words]
    yield "AEDAT 3", in_bytes(folder / "3.aedat", *packets)
    yield "AEDAT 2", in_bytes(folder / "2.aedat", b"#!AER-DAT2.0\r\n# AEChip: DAVIS240C\r\n", aedat2_words(events))
    yield "npz", written(folder / "a.npz", events)
    yield "packed", written(folder / "a.packed", events)
    yield "HDF5 (Blosc zstd)", written(folder / "a.h5", events)
    columns = {"x": events.x, "y": events.y, "pol": events.p, "ts": t_us, "time_unit": "us"}
    savemat(folder / "a.mat", {**columns, "width": SIZE.width, "height": SIZE.height})
    yield "MATLAB", folder / "a.mat"
    (folder / "evimo").mkdir()
    np.save(folder / "evimo" / "dataset_events_t.npy", (events.t_ns * 1e-9).astype(np.float32))
    np.save(folder / "evimo" / "dataset_events_xy.npy", np.column_stack([events.x, events.y]))
    np.save(folder / "evimo" / "dataset_events_p.npy", events.p)
    yield "EVIMO2", folder / "evimo"
    yield "ECD text", written(folder / "text", events)
    yield "CSV", in_bytes(folder / "a.csv", b"t_s x y p\n", format_event_text(events))


def best_of(repeats: int, work: Callable[[], int]) -> tuple[float, int]:
    """Return the shortest time in seconds of the processor and the result."""
    best, result = np.inf, 0
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def read_ours(path: Path) -> int:
    options: dict[str, Any] = {"sensor_size": SIZE} if path.suffix in (".csv", "") else {}
    return sum(len(events) for events in open_recording(path, **options).chunks())


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
    parser.add_argument("--events", type=int, default=6_000_000, help="size of each recording")
    parser.add_argument("--rate", type=float, default=3e6, help="events per second: 3e6 are messages of 30,000")
    parser.add_argument("--compression", choices=["none", "bz2", "lz4"], default="none", help="of the EventArray bag")
    parser.add_argument("--only", default="", help="formats whose name has this in it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    events = make_events(options.events, options.rate)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in make_files(Path(folder), events, options.compression):
            if options.only.lower() not in name.lower():
                continue
            read_ours(path)  # compiles
            seconds, count = best_of(3, lambda path=path: read_ours(path))  # type: ignore[misc]
            assert count == options.events, (name, count)
            unit_s = calibrate(count)
            size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
            rows.append((name, size / count, count / seconds / 1e6, seconds / unit_s, 1e9 * unit_s / count))
            if name.endswith("EventArray"):
                seconds, count = best_of(1, lambda path=path: read_typed(path, 300_000))  # type: ignore[misc]
                rows.append(("  the same, typed", size / options.events, count / seconds / 1e6, np.nan, rows[-1][-1]))
    if options.json:
        keys = ("format", "bytes_per_event", "million_events_per_s", "bincount_passes", "bincount_ns_per_event")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
        return
    print(f"{options.events:,} events at {options.rate:,.0f} per second, time of one processor, best of three")
    print(f"{'format':24}{'bytes/event':>12}{'Mev/s':>10}{'np.bincount passes':>20}{'one pass, ns/event':>20}")
    for name, *figures in rows:
        print(f"{name:24}{figures[0]:12.1f}{figures[1]:10.1f}{figures[2]:20.1f}{figures[3]:20.2f}")


if __name__ == "__main__":
    main()
