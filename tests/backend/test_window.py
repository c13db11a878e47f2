from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.backend.window import sliding_windows
from cmaxslam_fbp.events import Events


def events_at(times):
    t_ns = np.array(times, np.int64)
    return Events(
        t_ns, np.arange(len(t_ns)).astype(np.uint16), np.zeros(len(t_ns), np.uint16), np.ones_like(t_ns, "u1")
    )


def cut(events, places):
    bounds = [0, *sorted(min(place, len(events)) for place in places), len(events)]
    return [events[a:b] for a, b in pairwise(bounds)]


@given(
    times=st.lists(st.integers(1000, 1300), min_size=1, max_size=60),
    lengths=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    places=st.lists(st.integers(0, 60), max_size=6),
)
def test_windows_are_those_of_the_whole_stream_however_it_is_cut(times, lengths, places):
    events = events_at(sorted(times))
    stride, window_ns = sorted(lengths)
    windows = list(sliding_windows(iter(cut(events, places)), window_ns, stride))
    first, last = int(events.t_ns[0]), int(events.t_ns[-1])
    count = max(0, -(-(last + 1 - first - window_ns) // stride)) + 1
    assert [window.start_ns for window in windows] == [first + k * stride for k in range(count)]
    assert [window.is_last for window in windows] == [False] * (count - 1) + [True]
    for window in windows:
        assert (window.end_ns, window.next_ns) == (window.start_ns + window_ns, window.start_ns + stride)
        inside = (events.t_ns >= window.start_ns) & (events.t_ns < window.end_ns)
        np.testing.assert_array_equal(window.events.x, events.x[inside])
    seen = np.concatenate([window.events.x for window in windows])
    assert set(seen.tolist()) == set(range(len(events)))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 30), st.integers(1, 4))
def test_every_event_leaves_exactly_one_window(times, stride, factor):
    """What leaves a window before the next one, and the last window's rest, is each event once."""
    events = events_at(sorted(times))
    leaving = []
    for window in sliding_windows([events], factor * stride, stride):
        leaving += window.leaving.x.tolist()
    assert leaving == list(range(len(events)))


def test_a_stream_shorter_than_a_window_is_one_last_window():
    (window,) = sliding_windows([events_at([7, 9])], 100, 50)
    assert (window.start_ns, window.end_ns, window.is_last, len(window.events)) == (7, 107, True, 2)


def test_a_silence_has_windows_without_events():
    windows = list(sliding_windows([events_at([0, 1]), events_at([100])], 10, 10))
    assert [len(window.events) for window in windows] == [2, *[0] * 9, 1]


@pytest.mark.parametrize("chunks", [[], [Events.empty(), Events.empty()]], ids=["nothing", "empty chunks"])
def test_without_events_there_is_no_window(chunks):
    assert list(sliding_windows(chunks, 10, 5)) == []


@pytest.mark.parametrize("stride", [0, -1, 11])
def test_a_window_that_would_skip_events_is_refused(stride):
    with pytest.raises(ValueError, match="10 ns cannot move by"):
        list(sliding_windows([events_at([0])], 10, stride))
