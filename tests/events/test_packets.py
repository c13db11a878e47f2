import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import LONGEST_SILENCE_NS, mean_time_ns, packets_at_rate, packets_by_count

EPOCH_NS = 1_468_941_032_229_417_000


def stream(t_ns):
    t_ns = np.asarray(t_ns, np.int64)
    number = np.arange(len(t_ns))
    return Events(t_ns, number.astype(np.uint16), number.astype(np.uint16), (number % 2).astype(np.uint8))


def cut(events, sizes):
    edges = np.clip(np.cumsum([0, *sizes, len(events)]), 0, len(events))
    return [events[a:b] for a, b in itertools.pairwise(edges)]


sizes = st.lists(st.integers(0, 40), max_size=20)


@given(st.integers(0, 100), st.integers(1, 30), sizes)
def test_packets_by_count_cover_the_stream_once_however_it_is_cut(total, count, sizes):
    events = stream(EPOCH_NS + 1000 * np.arange(total))
    packets = list(packets_by_count(cut(events, sizes), count))
    whole, rest = divmod(total, count)
    expected = [count] * whole + ([rest] if rest and 2 * rest >= count else [])
    assert [len(packet.events) for packet in packets] == expected
    joined = Events.concatenate(packet.events for packet in packets)
    np.testing.assert_array_equal(joined.x, events.x[: sum(expected)])
    for packet in packets:
        assert packet.t_ns == (int(packet.events.t_ns[0]) + int(packet.events.t_ns[-1])) // 2


def test_the_mean_time_is_exact_at_unix_stamps():
    assert mean_time_ns(stream([EPOCH_NS, EPOCH_NS + 1, EPOCH_NS + 5])) == EPOCH_NS + 2


@given(st.integers(1, 300), st.integers(2, 40), st.integers(1, 50), sizes)
def test_packets_at_rate_are_centred_on_their_times(total, count, interval_us, sizes):
    events = stream(EPOCH_NS + 1000 * np.arange(total))
    packets = list(packets_at_rate(cut(events, sizes), count, interval_us * 1000))
    if (total - 1) < interval_us:  # too short for a single time: one packet of its first events
        (packet,) = packets
        np.testing.assert_array_equal(packet.events.x, np.arange(min(count, total)))
        assert packet.t_ns == mean_time_ns(packet.events)
        return
    assert [packet.t_ns - EPOCH_NS for packet in packets] == list(
        range(interval_us * 1000, (total - 1) * 1000 + 1, interval_us * 1000)
    )
    for packet in packets:
        middle = (packet.t_ns - EPOCH_NS) // 1000  # the number of the event at this time
        first = int(packet.events.x[0])
        assert len(packet.events) == min(count, total)
        np.testing.assert_array_equal(packet.events.x, np.arange(first, first + len(packet.events)))
        if middle - count // 2 >= 0 and middle - count // 2 + count <= total:
            assert first == middle - count // 2


def test_a_silent_stretch_still_has_its_packets():
    events = stream([0, 10, 20, 1_000_000, 1_000_010])
    packets = list(packets_at_rate([events], 2, 250_000))
    assert [packet.t_ns for packet in packets] == [250_000, 500_000, 750_000, 1_000_000]
    assert [packet.events.t_ns.tolist() for packet in packets] == [[20, 1_000_000]] * 4


@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_long_silence_costs_no_more_packets_than_a_short_one(count):
    second_ns, day_ns = 10**9, 86_400 * 10**9
    t_ns = np.arange(0, second_ns, 10_000_000)
    packets = list(packets_at_rate([stream(np.concatenate([t_ns, t_ns + day_ns + 1]))], count, second_ns // 4))
    times = [packet.t_ns for packet in packets]
    silence = [t for t in times if second_ns <= t <= day_ns]
    assert silence == [second_ns + k * second_ns // 4 for k in range(len(silence))]
    assert silence[-1] == second_ns - 10_000_000 + LONGEST_SILENCE_NS - 240_000_000
    assert times[3 + len(silence) :] == [day_ns + k * second_ns // 4 for k in (1, 2, 3)]


def test_long_packets_are_cut_to_the_time_about_their_own_but_not_below_the_least_count():
    t_ns = np.concatenate([np.arange(0, 100_000, 1000), np.arange(100_000, 200_000, 100)])  # 1 and 10 events per us
    packets = list(packets_at_rate([stream(t_ns)], 60, 50_000, max_duration_ns=20_000, min_count=30))
    assert [packet.t_ns for packet in packets] == [50_000, 100_000, 150_000]
    sparse, border, dense = (packet.events for packet in packets)
    assert sparse.t_ns.tolist() == list(range(35_000, 65_000, 1000))  # 20 us hold only 20 events: the 30 next to it
    assert (border.t_ns[0], border.t_ns[-1]) == (90_000, 102_900)  # 10 us before it, and half of 60 events after it
    assert (len(dense), dense.t_ns[0], dense.t_ns[-1]) == (60, 147_000, 152_900)  # shorter than the limit: untouched


def test_the_least_count_may_depend_on_the_time():
    t_ns = np.arange(0, 200_000, 1000)
    options = {"max_duration_ns": 4000, "min_count": lambda t_ns: 30 if t_ns < 100_000 else 6}
    packets = list(packets_at_rate([stream(t_ns)], 60, 50_000, **options))
    assert [len(packet.events) for packet in packets] == [30, 6, 6]


@given(st.integers(50, 300), st.integers(2, 40), st.integers(1, 50), sizes)
def test_packets_up_to_the_last_have_all_events_of_their_time(total, count, half_us, sizes):
    """As many as they may have in twice the time: none needs to be left out."""
    events = stream(EPOCH_NS + 1000 * np.arange(total))
    options = {"max_duration_ns": 2000 * half_us, "min_count": 1}
    for packet in packets_at_rate(cut(events, sizes), 4 * half_us + count, 7000, **options):
        near = events.between(packet.t_ns - 1000 * half_us, packet.t_ns + 1000 * half_us)
        np.testing.assert_array_equal(packet.events.t_ns, near.t_ns)


def test_short_packets_cover_the_least_time_with_every_nth_event():
    t_ns = np.arange(0, 200_000, 100)  # 10 events per us
    packets = list(packets_at_rate([stream(t_ns)], 60, 50_000, min_duration_ns=20_000))
    for packet in packets[:3]:
        assert packet.events.t_ns.tolist() == list(range(packet.t_ns - 10_000, packet.t_ns + 10_000, 400))
    np.testing.assert_array_equal(packets[0].events.x, packets[0].events.t_ns // 100)
    few = list(packets_at_rate([stream(t_ns)], 400, 50_000, min_duration_ns=20_000))
    assert few[1].events.t_ns.tolist() == list(range(80_000, 120_000, 100))  # they last longer already: untouched


@pytest.mark.parametrize("cutter", [lambda s: packets_by_count(s, 10), lambda s: packets_at_rate(s, 10, 10)])
def test_an_empty_stream_has_no_packets(cutter):
    assert list(cutter([])) == []
    assert list(cutter([Events.empty()])) == []


def test_only_what_is_needed_is_kept_in_memory():
    """A long stream passes through: the packets are views of its last chunks."""
    chunks = (stream(np.arange(i * 1000, (i + 1) * 1000)) for i in range(200))
    for packet in packets_at_rate(chunks, 500, 250):
        base = packet.events.t_ns.base
        assert base is None or len(base) < 5000


def test_no_more_is_read_than_a_packet_needs():
    """Where events are many, a packet is full long before its longest time: the chunks after it stay unread."""
    events = stream(EPOCH_NS + 10_000 * np.arange(20_000))  # 100 events a millisecond
    read = []
    chunks = (read.append(len(chunk)) or chunk for chunk in cut(events, [100] * 200))
    packets = packets_at_rate(chunks, 500, 10_000_000, min_duration_ns=4_000_000, max_duration_ns=100_000_000)
    packet = next(packets)
    assert len(packet.events) == 500
    assert abs(packet.t_ns - mean_time_ns(packet.events)) < 20_000
    assert sum(read) <= 1_000 + 300  # up to its time, half of it, and what is left of a chunk
