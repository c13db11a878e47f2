import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.config import EventsConfig
from cmaxslam_fbp.events import Defects, Events, SensorSize
from cmaxslam_fbp.events.filters import EventFilter, subsample

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


def test_the_configuration_drops_hot_pixels_before_every_nth_event_is_taken():
    x = np.tile([0, 9, 9, 9, 9, 9, 9, 9, 9, 1], 40)
    x[x < 9] = np.arange(80) % 8
    events = at_pixels(x, np.where(x == 9, 7, 3))
    kept = Events.concatenate(EventFilter(EventsConfig(hot_pixel_factor=None), SIZE).run([events[:123], events[123:]]))
    np.testing.assert_array_equal(kept.t_ns, events.t_ns)
    events_filter = EventFilter(EventsConfig(subsample=4), SIZE)
    kept = Events.concatenate(events_filter.run([events[:123], events[123:]]))
    np.testing.assert_array_equal(kept.t_ns, events[events.x != 9].t_ns[::4])
    assert events_filter.hot_pixels.pixels == [(9, 7, 320)]
    assert events_filter.hot_pixels.events == 320


def test_events_on_pixels_that_the_lens_does_not_see_are_dropped_and_counted(make_events):
    events, seen, defects = make_events(1000), np.ones((180, 240), bool), Defects()
    seen[:, 200:] = False
    events_filter = EventFilter(EventsConfig(), SensorSize(240, 180), seen)
    kept = Events.concatenate(events_filter.run([events[:400], events[400:]], defects))
    np.testing.assert_array_equal(kept.t_ns, events[events.x < 200].t_ns)
    assert defects.beyond_lens == 1000 - len(kept) > 0
    (line,) = defects.describe()
    assert "lay beyond the field of the calibrated lens and were dropped" in line
