import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events import Defects, Events, SensorSize
from cmaxslam_fbp.events.filters import filter_events, find_hot_pixels, remove_hot_pixels, subsample

SIZE = SensorSize(24, 18)


def at_pixels(x, y):
    n = len(x)
    return Events(np.arange(n), np.asarray(x, np.uint16), np.asarray(y, np.uint16), np.zeros(n, np.uint8))


@given(st.integers(0, 60), st.integers(1, 9), st.lists(st.integers(0, 20), max_size=8))
def test_subsampling_does_not_depend_on_the_chunks(total, step, sizes):
    events = at_pixels(np.arange(total), np.zeros(total))
    edges = np.clip(np.cumsum([0, *sizes, total]), 0, total)
    chunks = [events[a:b] for a, b in itertools.pairwise(edges)]
    kept = Events.concatenate(subsample(chunks, step))
    np.testing.assert_array_equal(kept.x, np.arange(0, total, step))


def test_a_step_below_one_is_refused():
    with pytest.raises(ValueError, match="1 or more"):
        list(subsample([], 0))


def test_hot_pixels_are_found_and_edges_are_not():
    random = np.random.default_rng(0)
    x, y = random.integers(0, 24, 20_000), random.integers(0, 18, 20_000)
    edge_x, edge_y = np.full(18 * 500, 12), np.repeat(np.arange(18), 500)  # a line that lingers
    hot_x, hot_y = np.repeat([3, 0], 800), np.repeat([4, 17], 800)
    events = at_pixels(np.concatenate([x, edge_x, hot_x]), np.concatenate([y, edge_y, hot_y]))
    hot = find_hot_pixels(events, SIZE, 3.0)
    assert np.argwhere(hot).tolist() == [[4, 3], [17, 0]]
    kept = Events.concatenate(remove_hot_pixels([events[:5000], events[5000:]], SIZE, 3.0))
    expected = events[~(((events.x == 3) & (events.y == 4)) | ((events.x == 0) & (events.y == 17)))]
    np.testing.assert_array_equal(kept.t_ns, expected.t_ns)


def test_a_few_events_make_no_hot_pixel():
    assert not find_hot_pixels(at_pixels([5, 5, 5], [5, 5, 5]), SIZE, 3.0).any()


def test_hot_pixels_are_dropped_in_the_whole_stream_after_the_first_events(monkeypatch):
    monkeypatch.setattr("cmaxslam_fbp.events.filters.HOT_PIXEL_EVENTS", 100)
    chunk = at_pixels([7] * 60 + [8] * 2, [7] * 62)
    kept = list(remove_hot_pixels([chunk] * 5, SIZE, 3.0))
    assert [events.x.tolist() for events in kept] == [[8, 8]] * 5
    assert list(remove_hot_pixels([], SIZE, 3.0)) == []


def test_the_configuration_drops_hot_pixels_before_every_nth_event_is_taken():
    x = np.tile([5, 9, 9, 9, 9, 9, 9, 9, 9, 6], 40)
    events = at_pixels(x, np.where(x == 9, 7, 3))
    kept = Events.concatenate(filter_events([events[:123], events[123:]], EventsConfig(), SIZE))
    np.testing.assert_array_equal(kept.t_ns, events.t_ns)
    config = EventsConfig(hot_pixel_factor=5, subsample=4)
    kept = Events.concatenate(filter_events([events[:123], events[123:]], config, SIZE))
    np.testing.assert_array_equal(kept.t_ns, events[events.x != 9].t_ns[::4])


def test_events_on_pixels_that_the_lens_does_not_see_are_dropped_and_counted(make_events):
    events, seen, defects = make_events(1000), np.ones((180, 240), bool), Defects()
    seen[:, 200:] = False
    kept = Events.concatenate(
        filter_events([events[:400], events[400:]], EventsConfig(), SensorSize(240, 180), seen, defects)
    )
    np.testing.assert_array_equal(kept.t_ns, events[events.x < 200].t_ns)
    assert defects.beyond_lens == 1000 - len(kept) > 0
    (line,) = defects.describe()
    assert "lay beyond the field of the calibrated lens and were dropped" in line
