"""The packets of a sequence that the studies of velocities run on: blocks of consecutive ones, with references."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, IntArray
from cmaxslam_fbp.choices import MODELS
from cmaxslam_fbp.config import FrontendConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.evaluation.translation_errors import camera_velocities
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet, packets_by_count
from cmaxslam_fbp.experiments.methods import EVENTS_PER_PACKET
from cmaxslam_fbp.experiments.sequences import StudySequence, open_sequence
from cmaxslam_fbp.frontend import VelocityEstimator
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.rows.row import Row, Values

RANGE_S = 30.0  # of the sequence: its first half a minute, as in the paper's study of the SLAM


@dataclass(frozen=True, eq=False)
class PacketSet:
    """M packets in blocks, and what is known of them.

    Attributes
    ----------
    camera : Camera
        That saw them.
    packets : list of Packet
        In order of time.
    blocks : (M,) int64
        Number of the block of each packet; those of a block follow each other without a gap.
    references : (M, 3) float64
        The camera's velocity at the packets' mean times: the gyroscope's in rad/s, or the poses' in m/s.
    starts : (blocks, 3) float64
        The velocity from which a block's first packet starts: that of the packet before it, as our default finds it.
    """

    camera: Camera
    packets: list[Packet]
    blocks: IntArray
    references: FloatArray
    starts: FloatArray


def packet_row(sequence: StudySequence, model: str, packets: int, block: int) -> Row:
    """Return the row that takes packets out of a sequence: in blocks of `block`, evenly over its first 30 s."""
    settings = {**sequence.described, "model": model, "packets": packets, "block": min(block, packets)}
    return Row(f"packets of {sequence.name}", extract, settings, sequence.places)


def extract(settings: Mapping[str, Any], out: Path) -> Values:
    """Take the packets out of the recording, and keep them in a file of their own."""
    recording = open_sequence(settings, out)
    wanted = _reference(recording, settings["model"])
    count = sum(len(events) for events in recording.chunks(None, RANGE_S)) // EVENTS_PER_PACKET
    blocks = -(-settings["packets"] // settings["block"])
    firsts = block_starts(count, blocks, settings["block"])
    estimator = VelocityEstimator(recording.require_camera(), FrontendConfig(packets="count", model=settings["model"]))
    kept: list[Packet] = []
    numbers: list[int] = []
    starts: list[FloatArray] = []
    for number, packet in enumerate(packets_by_count(recording.chunks(None, RANGE_S), EVENTS_PER_PACKET)):
        place = int(np.searchsorted(firsts, number, side="right")) - 1
        if number + 1 in firsts:
            # The packet before a block: a cold start, with a search.
            estimator.reset()
            starts.append(estimator.estimate(packet).velocity)
        if place >= 0 and number < firsts[place] + settings["block"] and number < count:
            kept.append(packet)
            numbers.append(place)
    t_ns = np.array([packet.t_ns for packet in kept], np.int64)
    references = wanted(t_ns)
    parts = (settings["sequence"], settings["identity"][:12], settings["model"], settings["packets"], settings["block"])
    name = f"sequences/{'-'.join(map(str, parts))}.npz"
    packed = _pack(recording.require_camera(), kept, np.array(numbers), references, np.array(starts))
    write_file(out / name, packed, make_folder=True)
    durations_ms = [1e-6 * float(packet.events.t_ns[-1] - packet.events.t_ns[0]) for packet in kept]
    return {
        "files": [name],
        "path": name,
        "packets": len(kept),
        "blocks": len(firsts),
        "median_packet_ms": float(np.median(durations_ms)),
        "rms_reference": float(np.sqrt((references**2).sum(axis=1).mean())),
    }


def block_starts(count: int, blocks: int, length: int) -> IntArray:
    """Return the numbers of the first packets of blocks, evenly over `count` packets, without overlap.

    Before each block there is at least one packet, from which it starts.
    """
    blocks = min(blocks, (count - 1) // length)
    if blocks < 1:
        raise RecordingError(
            f"{count} packets of {EVENTS_PER_PACKET:,} events are too few for a block of {length} and one before it"
        )
    ends = 1 + np.floor(np.linspace((count - 1) / blocks, count - 1, blocks) + 1e-9)
    return (ends - length).astype(np.int64)


def read_packets(path: Path) -> PacketSet:
    """Read what `extract` wrote."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    events = Events(arrays["t_ns"], arrays["x"], arrays["y"], arrays["p"])
    size = EVENTS_PER_PACKET
    packets = [Packet(events[k * size : (k + 1) * size], int(t_ns)) for k, t_ns in enumerate(arrays["packet_t_ns"])]
    width, height, fx, fy, cx, cy, *distortion = arrays["camera"].tolist()
    model: Any = str(arrays["distortion_model"])
    camera = Camera(int(width), int(height), fx, fy, cx, cy, tuple(distortion), model)
    return PacketSet(camera, packets, arrays["blocks"], arrays["references"], arrays["starts"])


def _pack(
    camera: Camera, packets: Iterable[Packet], blocks: IntArray, references: FloatArray, starts: FloatArray
) -> bytes:
    packets = list(packets)
    events = Events.concatenate([packet.events for packet in packets])
    buffer = io.BytesIO()
    np.savez(
        buffer,
        t_ns=events.t_ns,
        x=events.x,
        y=events.y,
        p=events.p,
        packet_t_ns=np.array([packet.t_ns for packet in packets], np.int64),
        blocks=blocks,
        references=references,
        starts=starts,
        camera=np.array([camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy, *camera.distortion]),
        distortion_model=np.array(camera.distortion_model),
    )
    return buffer.getvalue()


def _reference(recording: Recording, model: str) -> Any:
    """Return the function that gives reference velocities (M, 3) at times (M,)."""
    if MODELS[model].kind == "linear":
        poses = recording.ground_truth
        if poses is None or poses.positions_m is None:
            raise RecordingError(f"{recording.path} has no poses with positions to compare linear velocities with")
        return lambda t_ns: camera_velocities(poses, t_ns)
    gyroscope = recording.gyroscope
    if gyroscope is None:
        raise RecordingError(f"{recording.path} has no gyroscope to compare angular velocities with")
    return lambda t_ns: gyroscope.at(np.clip(t_ns, gyroscope.t_ns[0], gyroscope.t_ns[-1]))


def blocks_of(packet_set: PacketSet) -> Iterator[tuple[FloatArray, list[int]]]:
    """Yield each block: the velocity that it starts from, and the numbers of its packets."""
    for block, start in enumerate(packet_set.starts):
        yield start, np.flatnonzero(packet_set.blocks == block).tolist()
