"""Blocks of packets: evenly over the sequence, each with its reference and with a packet before it to start from."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.experiments.packet_sets import block_starts, blocks_of, extract, read_packets
from cmaxslam_fbp.experiments.sequences import open_sequence


@pytest.mark.parametrize(
    ("count", "blocks", "length"), [(100, 10, 10), (101, 10, 10), (513, 10, 10), (7, 2, 3), (2, 1, 1)]
)
def test_blocks_do_not_overlap_and_leave_a_packet_before_each(count, blocks, length):
    firsts = block_starts(count, blocks, length)
    assert firsts[0] >= 1
    assert (np.diff(firsts) >= length).all()
    assert firsts[-1] + length <= count
    assert len(firsts) == min(blocks, (count - 1) // length)


def test_too_few_packets_are_told():
    with pytest.raises(RecordingError, match="too few"):
        block_starts(3, 1, 3)


@pytest.fixture(scope="module")
def packets(quick_bench):
    sequence, *_ = quick_bench.sequences(["boxes_rotation"])
    (values,) = quick_bench.packets([sequence], "rotation")
    return sequence, values, read_packets(quick_bench.settings.out / values["path"])


def test_packets_are_those_of_the_recording(quick_bench, packets, assert_same_events):
    sequence, values, found = packets
    assert len(found.packets) == values["packets"] == quick_bench.settings.velocity_packets
    recording = open_sequence(sequence.places, quick_bench.settings.out)
    assert found.camera == recording.require_camera()
    packet = found.packets[-1]
    assert len(packet.events) == 20_000
    start_s = (int(packet.events.t_ns[0]) - recording.start_ns) / 1e9
    (events, *_) = recording.chunks(start_s)
    same = min(len(events), 1000)
    assert_same_events(packet.events[:same], events[:same])


def test_packets_of_a_block_follow_each_other(packets):
    *_, found = packets
    for _, numbers in blocks_of(found):
        ends = [int(found.packets[k].events.t_ns[-1]) for k in numbers]
        starts = [int(found.packets[k].events.t_ns[0]) for k in numbers]
        assert len(numbers) == 3
        assert all(0 <= after - before < 1_000_000 for before, after in zip(ends, starts[1:], strict=False))


def test_blocks_start_near_the_gyroscope(packets):
    *_, found = packets
    for start, numbers in blocks_of(found):
        assert np.degrees(np.linalg.norm(start - found.references[numbers[0]])) < 80


@pytest.mark.parametrize(("model", "words"), [("rotation", "no gyroscope"), ("translation", "no poses")])
def test_a_recording_without_reference_is_told(tmp_path, make_events, model, words):
    events = make_events(100_000)
    path = tmp_path / "events.npz"
    np.savez(path, t_ns=events.t_ns, x=events.x, y=events.y, p=events.p, width=240, height=180)
    with pytest.raises(RecordingError, match=words):
        extract({"recording": str(path), "model": model, "packets": 1, "block": 1}, tmp_path)
