import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.lone_events import LoneEvents

SIZE = SensorSize(5, 4)
MS = 1_000_000
EPOCH_NS = 1_468_941_032_229_417_000


def always(t_ns):
    return np.ones(len(t_ns), bool)


def events_of(rows):
    """Rows of milliseconds, x, y and polarity."""
    t_ms, x, y, p = np.array(rows, np.int64).reshape(-1, 4).T
    return Events(EPOCH_NS + t_ms * MS, x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))


def kept(rows, least=1, is_slow=always):
    return Events.concatenate(LoneEvents(SIZE, is_slow, least).run([events_of(rows)]))


def has_neighbours(events, slow, i, least):
    """By the definition: pixels that fired before, and pixels that fired after, in one slow stretch."""
    stretch = np.concatenate([[0], np.cumsum(np.diff(slow) != 0)])
    near = (stretch == stretch[i]) & (events.p == events.p[i]) & (np.abs(events.t_ns - events.t_ns[i]) <= 10 * MS)
    dx, dy = events.x.astype(int) - int(events.x[i]), events.y.astype(int) - int(events.y[i])
    near &= (np.abs(dx) <= 1) & (np.abs(dy) <= 1)
    pixels = list(zip(dx, dy, strict=True))
    before = {pixels[j] for j in range(i) if near[j]}
    after = {pixels[j] for j in range(i + 1, len(events)) if near[j]}
    return len(before) + len(after) >= least


rows = st.lists(st.tuples(st.integers(0, 4), *(st.integers(0, n) for n in (4, 3, 1))), max_size=60)


@given(rows, st.integers(0, 4), st.lists(st.integers(0, 60), max_size=4), st.integers(1, 80))
def test_slow_events_with_enough_neighbours_are_left_however_the_stream_is_cut(rows, least, cuts, fast_ms):
    gaps = np.array(rows, np.int64).reshape(-1, 4)
    events = events_of(np.column_stack([np.cumsum(gaps[:, 0]), gaps[:, 1:]]))

    def is_slow(t_ns):
        return (t_ns - EPOCH_NS) // (fast_ms * MS) % 2 == 0

    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    lone = LoneEvents(SIZE, is_slow, least)
    left = Events.concatenate(lone.run(events[a:b] for a, b in itertools.pairwise(edges)))
    slow = is_slow(events.t_ns)
    expected = [i for i in range(len(events)) if not slow[i] or has_neighbours(events, slow, i, least)]
    for column in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(left, column), getattr(events, column)[expected])
    assert lone.dropped == len(events) - len(expected)


def test_an_event_alone_is_dropped_and_two_beside_each_other_are_left():
    assert len(kept([(0, 2, 2, 1)])) == 0
    assert len(kept([(0, 2, 2, 1), (10, 3, 1, 1)])) == 2
    assert len(kept([(0, 2, 2, 1), (11, 3, 1, 1)])) == 0  # too late
    assert len(kept([(0, 2, 2, 1), (5, 3, 1, 0)])) == 0  # of the other polarity
    assert len(kept([(0, 0, 2, 1), (5, 2, 2, 1)])) == 0  # two pixels away
    assert len(kept([(0, 0, 0, 1), (5, 4, 0, 1), (6, 4, 3, 1), (7, 0, 3, 1)])) == 0  # at opposite borders


def test_a_pixel_that_fires_again_and_again_is_one_neighbour_before_and_one_after():
    rows = [(t, 2, 2, 1) for t in range(5)]
    assert len(kept(rows, least=2)) == 3  # the first has none before it, the last none after
    assert len(kept(rows, least=3)) == 0


def test_events_just_before_an_error_of_the_stream_are_passed_on():
    def stream():
        yield events_of([(0, 2, 2, 1), (1, 2, 2, 1)])
        raise OSError("the disk is gone")

    left = []
    with pytest.raises(OSError, match="the disk is gone"):
        left.extend(LoneEvents(SIZE, always, 1).run(stream()))
    assert len(Events.concatenate(left)) == 2


def test_a_live_stream_waits_for_no_more_than_the_neighbours():
    lone = LoneEvents(SIZE, always, 1).run(events_of([(t, 2, 2, 1)]) for t in range(0, 100, 5))
    first = next(lone)
    assert (first.t_ns[0], next(lone).t_ns[0]) == (EPOCH_NS, EPOCH_NS + 5 * MS)


def test_everything_is_kept_where_nothing_is_asked():
    rows = [(20 * t, t % 5, 0, 1) for t in range(9)]
    assert len(kept(rows, least=0)) == 9
    assert len(kept(rows, least=1)) == 0
