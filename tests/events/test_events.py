"""The type of a piece of an event stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmaxslam_fbp.events.events import Events


def events_at(times):
    count = len(times)
    return Events(
        np.array(times, np.int64),
        np.arange(count, dtype=np.uint16),
        np.arange(100, 100 + count, dtype=np.uint16),
        np.arange(count, dtype=np.uint8) % 2,
    )


def columns(events):
    return [events.t_ns.tolist(), events.x.tolist(), events.y.tolist(), events.p.tolist()]


def test_no_events_have_all_columns():
    none = Events.empty()
    assert len(none) == 0
    assert [c.dtype for c in (none.t_ns, none.x, none.y, none.p)] == [np.int64, np.uint16, np.uint16, np.uint8]


@pytest.mark.parametrize(
    ("name", "dtype"), [("t_ns", np.float64), ("t_ns", np.int32), ("x", np.int16), ("y", np.int64), ("p", np.bool_)]
)
def test_other_types_are_refused_by_column(name, dtype):
    arrays = {"t_ns": np.zeros(2, np.int64), "x": np.zeros(2, np.uint16), "y": np.zeros(2, np.uint16)}
    arrays["p"] = np.zeros(2, np.uint8)
    arrays[name] = arrays[name].astype(dtype)
    with pytest.raises(TypeError, match=rf"Events\.{name} is {np.dtype(dtype)}"):
        Events(**arrays)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(TypeError, match=r"Events\.y is uint16 \(3,\); expected uint16 \(2,\)"):
        Events(np.zeros(2, np.int64), np.zeros(2, np.uint16), np.zeros(3, np.uint16), np.zeros(2, np.uint8))


def test_a_slice_is_a_view_of_all_columns():
    events = events_at([10, 20, 30, 40])
    part = events[1:3]
    assert columns(part) == [[20, 30], [1, 2], [101, 102], [1, 0]]
    for name in ("t_ns", "x", "y", "p"):
        assert np.shares_memory(getattr(part, name), getattr(events, name))


def test_masks_and_indices_select_in_all_columns():
    events = events_at([10, 20, 30, 40])
    assert columns(events[events.p == 1]) == [[20, 40], [1, 3], [101, 103], [1, 1]]
    assert columns(events[np.array([3, 0])]) == [[40, 10], [3, 0], [103, 100], [1, 0]]


def test_pieces_are_joined_in_the_order_given():
    events = events_at([10, 20, 30, 40, 50])
    assert columns(Events.concatenate(iter([events[:2], Events.empty(), events[2:]]))) == columns(events)
    assert columns(Events.concatenate([events[3:], events[:1]]))[0] == [40, 50, 10]
    assert Events.concatenate([events]) is events
    assert len(Events.concatenate([])) == 0


def test_a_time_range_is_half_open():
    events = events_at([10, 20, 20, 30])
    assert events.between(20, 30).t_ns.tolist() == [20, 20]
    assert events.between(20, 31).t_ns.tolist() == [20, 20, 30]
    assert events.between(21, 30).t_ns.tolist() == []
    assert np.shares_memory(events.between(10, 30).x, events.x)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), max_size=30).map(sorted), *[st.integers(-(2**62), 2**62)] * 2)
def test_a_time_range_takes_exactly_its_events(times, start_ns, end_ns):
    part = events_at(times).between(start_ns, end_ns)
    assert part.t_ns.tolist() == [t for t in times if start_ns <= t < end_ns]


def test_consecutive_ranges_share_nothing_and_miss_nothing():
    events = events_at([10, 20, 20, 30, 45])
    pieces = [events.between(start, start + 10) for start in range(0, 60, 10)]
    assert columns(Events.concatenate(pieces)) == columns(events)
