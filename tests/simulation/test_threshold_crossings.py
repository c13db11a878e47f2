"""Hand-computed events of single pixels."""

import numpy as np
import pytest

from cmaxslam_fbp.simulation.sensor_kernels import (
    LONG_AGO_US,
    cross_levels,
    first_noise,
    next_random,
    noise_gap_us,
    order_events,
)


class Pixels:
    """A row of pixels with given thresholds, that remembers its state from block to block."""

    def __init__(self, count=1, on=0.25, off=0.25, level=0.0, refractory_us=0, rate_hz=0.0, seed=0):
        self.on = np.full(count, on, np.float32)
        self.off = np.full(count, off, np.float32)
        self.rates_hz = np.full(count, float(rate_hz))
        self.refractories_us = np.full(count, refractory_us, np.int64)
        self.reference = np.full(count, level, np.float32)
        self.previous = np.full(count, level, np.float32)
        self.last_us = np.full(count, LONG_AGO_US, np.int64)
        self.random = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
        self.noise_us = np.empty(count)
        first_noise(self.rates_hz, self.random, self.noise_us)

    def cross(self, levels, times_us, start_us=0, capacity=100_000, first=0):
        """Events (stamp, pixel, polarity) of levels (N, K) at times (K,); the time 0 is the state's."""
        levels = np.atleast_2d(np.asarray(levels, np.float32))
        padded = np.concatenate([np.full((len(levels), 1), np.nan, np.float32), levels], axis=1)
        times = np.concatenate([[0.0], np.asarray(times_us, np.float64)])
        stamps, codes = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        self.done, count = cross_levels(
            padded, times, np.int64(start_us), first, len(levels), self.on, self.off, self.rates_hz,
            self.refractories_us, self.reference, self.previous, self.last_us, self.noise_us, self.random,
            stamps, codes, 0,
        )  # fmt: skip
        return [(int(t), int(c) // 2, int(c) % 2) for t, c in zip(stamps[:count], codes[:count], strict=True)]


def test_a_rising_ramp_gives_one_event_per_threshold_at_the_crossing_times():
    # 0 to 1 in 1000 us: 0.25, 0.5, 0.75 and, reached exactly, 1.
    assert Pixels().cross([[1.0]], [1000]) == [(250, 0, 1), (500, 0, 1), (750, 0, 1), (1000, 0, 1)]


def test_a_falling_ramp_gives_off_events_by_the_off_threshold():
    assert Pixels(on=0.25, off=0.5).cross([[-1.25]], [1000]) == [(400, 0, 0), (800, 0, 0)]


def test_stamps_are_the_first_whole_microsecond_at_or_after_the_crossing():
    # Reached at 33.33... and 66.66... us.
    assert Pixels(on=0.25).cross([[0.75]], [100]) == [(34, 0, 1), (67, 0, 1), (100, 0, 1)]


def test_the_reference_moves_by_one_threshold_and_survives_the_block():
    pixels = Pixels(on=0.25, off=0.25)
    assert pixels.cross([[0.375]], [300]) == [(200, 0, 1)]
    # From 0.375 on to 0.5 (the next threshold), then back to 0.25 (the one below the reference 0.5).
    assert pixels.cross([[0.625, 0.125]], [200, 400], start_us=300) == [(100, 0, 1), (350, 0, 0)]
    assert pixels.reference[0] == np.float32(0.25)
    assert pixels.previous[0] == np.float32(0.125)


def test_a_level_that_returns_before_the_threshold_gives_no_event():
    pixels = Pixels()
    assert pixels.cross([[0.24, -0.24, 0.2]], [10, 20, 30]) == []
    assert pixels.reference[0] == 0
    assert pixels.previous[0] == np.float32(0.2)


def test_steps_of_unequal_length_interpolate_in_their_own_time():
    assert Pixels().cross([[0.125, 0.375]], [900, 1000]) == [(950, 0, 1)]


def test_crossings_within_the_refractory_time_are_lost_but_move_the_reference():
    pixels = Pixels(refractory_us=300)
    # Due at 250, 500, 750, 1000: the one at 500 is 250 us after the last event, 750 is 500 us after it.
    assert pixels.cross([[1.0]], [1000]) == [(250, 0, 1), (750, 0, 1)]
    assert pixels.reference[0] == 1
    # The last event was at 750; due at 1100 in the recording's time, 350 us later.
    assert pixels.cross([[1.25]], [100], start_us=1000) == [(100, 0, 1)]


def test_an_event_exactly_at_the_end_of_the_refractory_time_counts():
    assert Pixels(refractory_us=250).cross([[1.0]], [1000]) == [(250, 0, 1), (500, 0, 1), (750, 0, 1), (1000, 0, 1)]


def test_pixels_do_not_see_each_other():
    pixels = Pixels(3)
    assert pixels.cross([[0.5], [0.0], [-0.25]], [1000]) == [(500, 0, 1), (1000, 0, 1), (1000, 2, 0)]


def test_a_full_output_keeps_the_state_of_the_pixel_that_found_no_room():
    whole, pieces = Pixels(2, rate_hz=500.0), Pixels(2, rate_hz=500.0)
    levels = np.array([[1.0, 0.0], [2.0, 0.5]])
    expected = whole.cross(levels, [5000, 10000])
    first_count = sum(pixel == 0 for _, pixel, _ in expected)
    start = pieces.cross(levels, [5000, 10000], capacity=first_count + 2)
    assert pieces.done == 1
    assert len(start) == first_count
    rest = pieces.cross(levels[1:], [5000, 10000], first=1)
    assert start + rest == expected
    for name in ("reference", "previous", "last_us", "noise_us", "random"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


def test_noise_comes_at_its_rate_with_both_polarities_and_exponential_gaps():
    pixels = Pixels(200, rate_hz=40.0)
    events = pixels.cross(np.zeros((200, 1)), [10_000_000])
    assert len(events) == pytest.approx(200 * 40 * 10, abs=4 * np.sqrt(80_000))
    assert np.mean([p for _, _, p in events]) == pytest.approx(0.5, abs=0.01)
    gaps = np.concatenate([np.diff([t for t, pixel, _ in events if pixel == n]) for n in range(20)])
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    assert (pixels.reference == 0).all()


def test_noise_and_signal_are_ordered_and_share_the_refractory_time():
    pixels = Pixels(1, rate_hz=3000.0, refractory_us=700)
    stamps = [t for t, _, _ in pixels.cross([[3.0, -3.0, 3.0]], [10_000, 20_000, 30_000])]
    assert len(stamps) > 15
    assert np.diff(stamps).min() >= 700


def test_the_random_numbers_are_splitmix64():
    state, bits = next_random(np.uint64(1234567))
    assert int(bits) == 6457827717110365317  # the generator's published first value for this seed
    _, bits = next_random(state)
    assert int(bits) == 3203168211198807973
    assert noise_gap_us(np.uint64(2**64 - 1), 10.0) == 0
    assert noise_gap_us(bits, 0.0) == np.inf


def test_events_are_ordered_by_time_and_then_by_pixel():
    rng = np.random.default_rng(1)
    pixels = np.sort(rng.integers(0, 12, 500)).astype(np.int32)
    stamps = rng.integers(1, 51, 500).astype(np.int32)
    codes = 2 * pixels + rng.integers(0, 2, 500).astype(np.int32)
    t_ns, x, y, p = np.empty(500, np.int64), np.empty(500, np.uint16), np.empty(500, np.uint16), np.empty(500, np.uint8)
    order_events(stamps, codes, 4, 50, 1000, 7_000_000_000, t_ns, x, y, p)
    order = np.lexsort((np.arange(500), stamps))
    np.testing.assert_array_equal(t_ns, 7_000_000_000 + 1000 * (1000 + stamps[order].astype(np.int64)))
    np.testing.assert_array_equal(x, pixels[order] % 4)
    np.testing.assert_array_equal(y, pixels[order] // 4)
    np.testing.assert_array_equal(p, codes[order] % 2)
