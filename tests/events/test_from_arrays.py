"""Arrays in memory are checked as those of an .npz archive are (tests/io/test_npz.py has the rest)."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events


def test_seconds_nanoseconds_and_named_units_give_the_same_events():
    columns = [3, 4], [5, 6], [True, False]
    for events in (
        Events.from_arrays([1.5, 2.25], *columns),
        Events.from_arrays(np.array([1_500_000_000, 2_250_000_000]), *columns),
        Events.from_arrays([1_500_000, 2_250_000], *columns, time_unit="us"),
        Events.from_arrays([1500.0, 2250.0], [3.0, 4.0], [5.0, 6.0], [1, -1], time_unit="ms"),
    ):
        assert events.t_ns.tolist() == [1_500_000_000, 2_250_000_000]
        assert (events.x.tolist(), events.y.tolist(), events.p.tolist()) == ([3, 4], [5, 6], [1, 0])


def test_no_events_are_no_events():
    assert len(Events.from_arrays([], [], [], [])) == 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"t": [0.0, np.nan]}, "the arrays: the time of event 1 is not a finite number"),
        ({"t": [1, 2], "time_unit": "minutes"}, "time_unit 'minutes'; it must be one of s, ms, us, ns"),
        ({"x": [1.0, 2.5]}, "x of event 1 is 2.5, not a pixel"),
        ({"y": [-1, 2]}, "y of event 0 is -1, not a pixel"),
        ({"y": [1e9, 2]}, "y of event 0 is 1000000000.0, not a pixel"),
        ({"p": [2, 0]}, "the polarity of event 0 is 2"),
        ({"p": [1]}, "the arrays: the columns differ in length"),
        ({"x": [[1, 2]]}, "it must be a list of numbers"),
        ({"x": ["a", "b"]}, "it must be a list of numbers"),
    ],
)
def test_values_that_cannot_be_right_are_named(change, complaint):
    with pytest.raises(RecordingError, match=complaint):
        Events.from_arrays(**{"t": [1, 2], "x": [1, 2], "y": [1, 2], "p": [1, 0], **change})


def test_microseconds_taken_for_nanoseconds_are_found_out():
    ones = np.ones(5000)
    with pytest.warns(UserWarning, match="the times have no unit: they were taken as us, 2e\\+06 events a second"):
        events = Events.from_arrays(np.arange(5000) // 2, ones, ones, ones)
    assert int(events.t_ns[-1]) == 2_499_000


def test_single_precision_is_enough_for_some_seconds():
    """Their times come back to half of what float32 tells apart, in whole microseconds where that is more than 0.1."""
    t_us = np.array([1, 999_999, 15_999_999])
    columns = [[1, 2, 3]] * 2 + [[0, 1, 0]]
    assert Events.from_arrays((t_us / 1e6).astype(np.float32), *columns).t_ns.tolist() == (t_us * 1000).tolist()
    with pytest.raises(RecordingError, match="float32, which cannot hold microseconds"):
        Events.from_arrays((t_us / 1e6 + 1).astype(np.float32), *columns)
