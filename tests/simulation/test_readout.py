from itertools import pairwise

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.simulation import SensorSettings
from cmaxslam_fbp.simulation.readout import Readout

START_NS, END_NS = 5_000_000_000, 6_000_000_000


def events_at(t_us):
    """Events at microseconds since the start; x is their number."""
    t_ns = START_NS + np.asarray(t_us, np.int64) * 1000
    number = np.arange(len(t_ns)).astype(np.uint16)
    return Events(t_ns, number, np.zeros_like(number), np.zeros(len(t_ns), np.uint8))


def read_out(events, blocks=1, **changes):
    readout = Readout(SensorSettings(**changes), 0, START_NS, END_NS)
    edges = np.linspace(START_NS, END_NS, blocks + 1).astype(np.int64)
    parts = [events[(events.t_ns > a) & (events.t_ns <= b)] for a, b in pairwise(edges)]
    return Events.concatenate([readout.pass_events(part, int(b)) for part, b in zip(parts, edges[1:], strict=True)])


def test_an_ideal_readout_changes_nothing():
    events = events_at([1, 5, 5, 900])
    assert Readout(SensorSettings(), 0, START_NS, END_NS).pass_events(events, END_NS) is events


def test_the_arbiter_passes_a_burst_one_by_one_in_order():
    # A burst of 100 at 1000 us, at 0.5 events per microsecond; then nothing waits any more.
    events = events_at([10, *[1000] * 100, 1101, 2000])
    out = read_out(events, readout_rate_hz=0.5e6)
    t_us = (out.t_ns - START_NS) // 1000
    np.testing.assert_array_equal(t_us, [10, *(1000 + 2 * np.arange(101)), 2000])
    np.testing.assert_array_equal(out.x, np.arange(103))


def test_the_arbiter_remembers_its_queue_from_block_to_block():
    rng = np.random.default_rng(0)
    events = events_at(np.sort(rng.integers(1, 1_000_000, 60_000)))
    once, often = (read_out(events, blocks, readout_rate_hz=62e3) for blocks in (1, 97))
    np.testing.assert_array_equal(once.t_ns, often.t_ns)
    np.testing.assert_array_equal(once.x, often.x)
    free = -np.inf
    for arrived, left in zip(events.t_ns - START_NS, once.t_ns - START_NS, strict=False):
        leave = max(float(arrived), free)
        assert leave - 1 <= left <= leave + 1000
        free = leave + 1e9 / 62e3


def test_a_readout_that_is_too_slow_loses_what_is_left_at_the_end():
    out = read_out(events_at(np.arange(1, 1_000_001, 20)), 10, readout_rate_hz=10e3)
    assert len(out) == pytest.approx(10_000, abs=2)
    assert out.t_ns[-1] <= END_NS


@pytest.mark.parametrize("blocks", [1, 37])
def test_jitter_moves_stamps_by_its_deviation_and_they_stay_in_order(blocks):
    events = events_at(np.arange(20, 1_000_000, 20)[:50_000])
    out = read_out(events, blocks, jitter_s=60e-6)
    assert len(out) == len(events)
    assert (np.diff(out.t_ns) >= 0).all()
    assert (out.t_ns % 1000 == 0).all()
    errors_us = (out.t_ns - events.t_ns[out.x]) / 1000
    assert np.abs(errors_us).max() <= 181
    assert errors_us.std() == pytest.approx(60, rel=0.03)
    assert errors_us.mean() == pytest.approx(0.5, abs=1)
    assert out.t_ns.min() > START_NS
    assert out.t_ns.max() <= END_NS
