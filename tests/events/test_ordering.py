"""What the order of stamps tells before the events are used (tests/io/test_bags.py has disorder and jumps back)."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.ordering import Defects, Piece, restore_order
from cmaxslam_fbp.io import Recording

UNIX_NS = 1_468_941_032_229_417_000


def events_at(*t_ns):
    ones = np.ones(len(t_ns), np.uint16)
    return Events(np.array(t_ns, np.int64), ones, ones, ones.astype(np.uint8))


def ordered(*pieces):
    defects = Defects()
    stream = restore_order((Piece(events_at(*times), f"piece {i}") for i, times in enumerate(pieces)), defects)
    return Events.concatenate(stream).t_ns.tolist(), defects


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, UNIX_NS, UNIX_NS + 5)],
        [(0, 0, 0, UNIX_NS, UNIX_NS + 5)],
        [(0,), (UNIX_NS, UNIX_NS + 5)],
        [(0,), (0, 0), (), (0, UNIX_NS), (UNIX_NS + 5,)],
        [(0, UNIX_NS + 5, UNIX_NS)],
        [(UNIX_NS - 11 * 10**9, UNIX_NS, UNIX_NS + 5)],
        [(-(2**61), UNIX_NS, UNIX_NS + 5)],
    ],
)
def test_a_first_stamp_that_is_alone_is_dropped_and_counted(pieces):
    times, defects = ordered(*pieces)
    assert times == [UNIX_NS, UNIX_NS + 5]
    assert defects.alone_at_start == sum(map(len, pieces)) - 2
    assert any("events at the start were dropped: their stamp is far before" in line for line in defects.describe())


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, 9 * 10**9, 10**10)],  # near enough
        [(0, 1, UNIX_NS)],  # two stamps are not alone
        [(0, 0), (0,)],  # nothing follows
        [(5,)],
        [(0,) * 1001 + (UNIX_NS,)],  # many events
    ],
)
def test_other_starts_stay(pieces):
    times, defects = ordered(*pieces)
    assert times == sorted(t for piece in pieces for t in piece)
    assert defects.describe() == []


def test_the_recording_starts_after_the_stamp_that_was_dropped():
    recording = Recording.from_events(events_at(0, UNIX_NS, UNIX_NS + 5), sensor_size=(4, 4))
    assert recording.start_ns == UNIX_NS
    assert Events.concatenate(recording.chunks(0, 1)).t_ns.tolist() == [UNIX_NS, UNIX_NS + 5]


@pytest.mark.parametrize(
    "times", [(5, 7, 2**63 - 1), (-(2**63), 5 - 2**63, 0), (2**62 + 1, 2**62 + 2), (5, -(2**62) - 1)]
)
def test_stamps_near_the_end_of_64_bits_are_errors(times):
    with pytest.raises(RecordingError, match=r"piece 0 has stamps up to [0-9]+ ns, which no clock shows"):
        ordered((*times, *times))


@pytest.mark.parametrize(
    "pieces", [[(5, 7, 6, 8, -(10**10), 9)], [(5, 7), (6, 8, -(10**10), 9)], [(5, 7, 6, 8), (-(10**10),)]]
)
def test_what_comes_before_a_jump_back_is_given_before_the_error(pieces):
    defects = Defects()
    stream = restore_order((Piece(events_at(*times), f"piece {i}") for i, times in enumerate(pieces)), defects)
    found = []
    with pytest.raises(RecordingError, match=r"jumps back by 10\.000 s at event [024] of piece [01]"):
        found.extend(int(t) for events in stream for t in events.t_ns)
    assert found == [5, 6, 7, 8]
    assert defects.reordered == 1


def test_with_less_held_back_what_comes_later_is_dropped():
    defects = Defects()
    pieces = [(0, 30, 20), (25, 60), (55, 90), (40, 49, 91, 92)]
    stream = restore_order((Piece(events_at(*times), "") for times in pieces), defects, held_back_ns=10)
    assert np.concatenate([events.t_ns for events in stream]).tolist() == [0, 20, 25, 30, 55, 60, 90, 91, 92]
    assert defects.too_late == 2
    assert "2 events came too late to be put into order, and were dropped" in defects.describe()


def test_of_very_many_events_a_tenth_of_a_second_is_held_and_not_all_of_one():
    """50 ms pieces of half a million events each."""
    count, step_ns = 500_000, 50_000_000
    ones = np.ones(count, np.uint16)
    read = 0

    def pieces():
        nonlocal read
        for k in range(40):
            read += 1
            t_ns = k * step_ns + np.arange(count, dtype=np.int64) * step_ns // count
            yield Piece(Events(t_ns, ones, ones, ones.astype(np.uint8)), f"piece {k}")

    held = [read * count - (k + 1) * count for k, _ in enumerate(restore_order(pieces(), Defects()))]
    assert max(held) <= 4_500_000
    assert read == 40


@pytest.mark.parametrize("first", [(0,), (0, 5), (0, 5, 40)])
def test_of_a_live_stream_only_the_last_while_waits_for_the_next_piece(first):
    """A sender that is silent for a while keeps nobody from what it has sent."""
    given = []

    def pieces():
        yield Piece(events_at(*first), "")
        yield Piece(events_at(*range(50, 1000)), "")
        assert given == [*first, *range(50, 990)]

    for events in restore_order(pieces(), Defects(), held_back_ns=10):
        given += events.t_ns.tolist()
    assert given == [*first, *range(50, 1000)]
