from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.bursts import BurstFilter

SIZE = SensorSize(3, 2)


def events_of(rows):
    t, x, y, p = np.array(rows, np.int64).reshape(-1, 4).T
    return Events(t.copy(), x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))


def first_of_bursts(rows, dead_ns):
    """The same one event at a time."""
    last, kept = {}, []
    for t, *pixel in rows:
        if tuple(pixel) not in last or t - last[tuple(pixel)] > dead_ns:
            kept.append((t, *pixel))
        last[tuple(pixel)] = t
    return kept


@given(
    rows=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), max_size=80),
    dead_ns=st.integers(1, 20),
    cuts=st.lists(st.integers(0, 80), max_size=4),
)
def test_keeps_what_a_loop_keeps_however_the_stream_is_cut(rows, dead_ns, cuts):
    rows = sorted(rows, key=lambda row: row[0])
    bursts = BurstFilter(SIZE, dead_ns)
    bounds = [0, *sorted(cuts), len(rows)]
    pieces = [bursts(events_of(rows[a:b])) for a, b in pairwise(bounds)]
    kept = Events.concatenate(pieces)
    found = list(zip(kept.t_ns.tolist(), kept.x.tolist(), kept.y.tolist(), kept.p.tolist(), strict=True))
    assert found == first_of_bursts(rows, dead_ns)


def test_a_dropped_event_starts_the_dead_time_anew():
    bursts = BurstFilter(SIZE, 10)
    kept = bursts(events_of([(0, 1, 1, 1), (8, 1, 1, 1), (16, 1, 1, 1), (27, 1, 1, 1)]))
    assert kept.t_ns.tolist() == [0, 27]


def test_an_event_just_at_the_end_of_the_dead_time_is_dropped():
    assert BurstFilter(SIZE, 10)(events_of([(5, 0, 0, 0), (15, 0, 0, 0)])).t_ns.tolist() == [5]
    assert BurstFilter(SIZE, 10)(events_of([(5, 0, 0, 0), (16, 0, 0, 0)])).t_ns.tolist() == [5, 16]


@pytest.mark.parametrize("other", [(2, 0, 0, 1), (2, 1, 0, 0), (2, 0, 1, 0)], ids=["polarity", "column", "row"])
def test_polarities_and_pixels_are_separate(other):
    assert len(BurstFilter(SIZE, 100)(events_of([(1, 0, 0, 0), other]))) == 2


def test_without_a_dead_time_all_events_pass_as_they_are():
    events = events_of([(1, 0, 0, 0), (1, 0, 0, 0)])
    assert BurstFilter(SIZE, 0)(events) is events


def test_the_first_event_of_a_pixel_passes_at_any_stamp():
    for start_ns in (0, -50, 1_468_941_032_000_000_000):
        assert len(BurstFilter(SIZE, 10)(events_of([(start_ns, 0, 0, 0)]))) == 1
