import weakref
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.filters import HotPixelFilter
from cmaxslam_fbp.simulation import SensorSettings, Simulation, SimulationSettings

SIZE = SensorSize(48, 36)
SECOND_NS = 10**9


def firing(pixels, rate_hz, start_s=0.0, end_s=2.0, seed=0):
    """Events of pixels (x, y) at a rate each, at random times."""
    random = np.random.default_rng(seed)
    x, y = np.repeat(
        np.array(pixels).reshape(-1, 2), random.poisson(rate_hz * (end_s - start_s), len(pixels)), axis=0
    ).T
    t_ns = random.uniform(start_s * SECOND_NS, end_s * SECOND_NS, len(x)).astype(np.int64)
    return Events(t_ns, x.astype(np.uint16), y.astype(np.uint16), random.integers(0, 2, len(x)).astype(np.uint8))


def noise(rate_hz, seed=1):
    return firing([(x, y) for y in range(SIZE.height) for x in range(SIZE.width)], rate_hz, seed=seed)


def together(*parts):
    events = Events.concatenate(parts)
    return events[np.argsort(events.t_ns, kind="stable")]


def found_in(events, factor=5.0):
    hot_pixels = HotPixelFilter(SIZE, factor)
    kept = Events.concatenate(hot_pixels.run([events]))
    assert len(kept) + hot_pixels.found.events == len(events)
    return {(x, y) for x, y, _ in hot_pixels.found.pixels}, kept


@pytest.mark.parametrize("rate_hz", [50, 1000, 100_000])
def test_hot_pixels_are_dropped_alone_in_small_groups_and_at_corners(rate_hz):
    hot = [
        (5, 5),
        (20, 20),
        (21, 20),
        (30, 10),
        (31, 10),
        (31, 11),
        (0, 0),
        (47, 35),
        (40, 30),
        (40, 31),
        (41, 30),
        (41, 31),
    ]
    background = noise(2)
    found, kept = found_in(together(background, firing(hot, rate_hz)))
    assert found == set(hot)
    beside = background[[(x, y) not in hot for x, y in zip(background.x.tolist(), background.y.tolist(), strict=True)]]
    if rate_hz >= 1000:  # from the first event on
        assert len(kept) == len(beside)


def test_a_hot_pixel_beside_a_hotter_one_is_found():
    found, _ = found_in(together(noise(2), firing([(7, 7)], 50_000), firing([(8, 7)], 1000), firing([(9, 7)], 200)))
    assert found == {(7, 7), (8, 7), (9, 7)}


@pytest.mark.parametrize("rate_hz", [100, 2000])
def test_an_edge_that_lingers_is_no_defect(rate_hz):
    line = [(12, y) for y in range(10, 16)]
    slanted = [(20 + k, 5 + k) for k in range(6)]
    found, _ = found_in(together(noise(2), firing(line, rate_hz), firing(slanted, rate_hz, seed=3)))
    assert not found


def test_a_pixel_that_flickers_is_dropped_while_it_does():
    background = noise(20)
    flicker = [firing([(9, 9)], 500, start, start + 0.3) for start in (0.5, 1.4)]
    hot_pixels = HotPixelFilter(SIZE, 5.0)
    kept = Events.concatenate(hot_pixels.run([together(background, *flicker)]))
    at_pixel = kept[(kept.x == 9) & (kept.y == 9)]
    assert len(at_pixel) < 40  # its own 20 Hz of noise while it is quiet
    assert [(x, y) for x, y, _ in hot_pixels.found.pixels] == [(9, 9)]


def test_a_pixel_is_given_back_when_it_is_like_the_others_again():
    everything = [(x, y) for y in range(SIZE.height) for x in range(SIZE.width)]
    events = together(firing([(9, 9)], 300, 0, 0.5), firing(everything, 100, 0.5, 2))
    kept = found_in(events)[1]
    assert len(kept[(kept.x == 9) & (kept.y == 9) & (kept.t_ns > SECOND_NS)]) > 60


@given(st.lists(st.integers(0, 4000), max_size=6))
def test_the_stream_may_be_cut_anywhere(cuts):
    events = together(noise(1), firing([(5, 5)], 300, 0.3, 0.8))
    whole = Events.concatenate(HotPixelFilter(SIZE, 5.0).run([events]))
    bounds = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    pieces = Events.concatenate(HotPixelFilter(SIZE, 5.0).run(events[a:b] for a, b in pairwise(bounds)))
    for name in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


def test_a_long_silence_forgets():
    """After it, what a pixel did before does not make it hot."""
    burst, later = firing([(9, 9)], 140, 0, 0.2), firing([(9, 9)], 140, 60, 60.2, seed=2)
    assert max(len(burst), len(later)) < 50 < len(burst) + len(later)
    assert not found_in(together(burst, later))[0]
    assert not list(HotPixelFilter(SIZE, 5.0).run([]))


@pytest.mark.parametrize("peak_speed_deg_s", [1.0, 30.0, 400.0])
def test_nothing_is_dropped_of_a_sensor_without_hot_pixels(peak_speed_deg_s):
    settings = SimulationSettings(
        scene="shapes",
        duration_s=2.0,
        peak_speed_deg_s=peak_speed_deg_s,
        seed=4,
        sensor=SensorSettings(hot_pixels=0, contrast_on=0.15, contrast_off=0.15),
    )
    simulation = Simulation(settings)
    hot_pixels = HotPixelFilter(simulation.sensor_size, 5.0)
    events = sum(len(chunk) for chunk in hot_pixels.run(simulation.chunks()))
    assert events > 10_000
    assert hot_pixels.found.pixels == []


def test_what_has_been_given_is_not_kept():
    events = together(noise(20))
    stream = HotPixelFilter(SIZE, 5.0).run(events[first : first + 100] for first in range(0, len(events), 100))
    given_away = [weakref.ref(next(stream).t_ns) for _ in range(20)]
    assert [reference() is None for reference in given_away] == [True] * 19 + [False]


@pytest.mark.parametrize("chunk", [70, 1000])
def test_very_many_events_are_judged_sooner_and_no_more_are_held(monkeypatch, chunk):
    monkeypatch.setattr("cmaxslam_fbp.events.filters._MOST_HELD", 500)
    events = together(noise(50.0), firing([(5, 4)], 2000.0))
    taken = []
    hot_pixels = HotPixelFilter(SIZE, 5.0)
    given, held = 0, []
    pieces = (taken.append(chunk) or events[first : first + chunk] for first in range(0, len(events), chunk))
    for kept in hot_pixels.run(pieces):
        held.append(sum(taken) - given)
        given += len(kept)
    assert max(held) <= 500 + chunk + hot_pixels.found.events
    assert [pixel[:2] for pixel in hot_pixels.found.pixels] == [(5, 4)]
    assert given + hot_pixels.found.events == len(events)
    assert hot_pixels.found.events > 0.9 * 2000 * 2
