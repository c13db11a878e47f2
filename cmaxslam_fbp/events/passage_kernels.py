"""Compiled search for the passages of edges over pixels.

A passage is written as a key, `(t - base) << bits | 16 pixel + n` with the number `n` of its events: to sort keys is to
sort passages by time. Of a pixel's run only what its middle can depend on is kept, in 17 bytes: a sensor of a
megapixel must fit the caches.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.events.prefetch_numba import AHEAD, prefetch

LONGEST_RUN = 8  # events: a longer run counts as several
STAMPS = LONGEST_RUN // 2  # the middle of a run lies at the last of these, at the latest
_ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplied by it, numbers that follow a pattern do not
_COUNT, _BEGUN = 0b11110, 0b100000  # parts of a state: twice the number of events; whether a run has ended before


@compiled
def passage_key(stamps, pixel, state, bits):
    """Return the key of a pixel's run: at the time of its `n / 2`-th event, counted from 1, or halfway between two.

    A single event has no event before it to be between: its own time is taken. The first run of a pixel has no run
    before it to tell its level from: it may have begun in the middle of a flank, and counts as a single event.
    """
    count = np.int64(state & _COUNT) >> 1
    middle = pixel * STAMPS + max(count >> 1, 1) - 1
    after = middle + (count & np.int64(count > 1))
    t = (np.int64(stamps[middle]) + np.int64(stamps[after])) >> 1
    return (t << bits) | (16 * pixel + (count if state & _BEGUN else 1))


@compiled
def add_events(t_ns, x, y, p, width, longest_ns, base_ns, bits, stamps, states, keys):
    """Add events (N,) to the runs of their pixels; write the keys of those that end by it, and return their number.

    `stamps` (P STAMPS,) uint32 holds the times since `base_ns` of the first events of each pixel's run, and `states`
    (P,) their number, their polarity and whether there was a run before; `keys` has one place more than events.
    """
    written = 0
    for i in range(len(t_ns)):
        later = min(i + AHEAD, len(t_ns) - 1)
        pixel = np.int64(y[later]) * width + x[later]
        prefetch(stamps, pixel * STAMPS)
        prefetch(states, pixel)
        pixel = np.int64(y[i]) * width + x[i]
        state = np.int64(states[pixel])
        polarity = np.int64(p[i])
        count = (state & _COUNT) >> 1
        first = pixel * STAMPS
        t = t_ns[i] - base_ns
        ends = np.int64((count == LONGEST_RUN) | ((state & 1) != polarity) | (t - np.int64(stamps[first]) > longest_ns))
        # Whether a run ends cannot be foretold: a key that is not wanted is cheaper than a branch.
        keys[written] = passage_key(stamps, pixel, state, bits)
        is_known = ends & np.int64(count > 0)
        written += is_known
        count *= 1 - ends
        place = first + min(count, STAMPS - 1)
        stamps[place] = t if count < STAMPS else np.int64(stamps[place])
        states[pixel] = (state & _BEGUN) | (_BEGUN * is_known) | ((count + 1) << 1) | polarity
    return written


@compiled
def is_chosen(pixel, mask):
    """Return whether a pixel is one of those that are looked at: one of `mask + 1`; one of four is among one of two."""
    return np.uint64(pixel) * _ODD >> np.uint64(40) & mask == 0


@compiled
def choose_events(x, y, width, mask, chosen):
    """Write the indices of the events (N,) of chosen pixels, and return their number."""
    count = 0
    for i in range(len(x)):
        chosen[count] = i
        count += is_chosen(np.int64(y[i]) * width + x[i], mask)
    return count


@compiled
def forget_others(mask, states):
    """Let go of the runs of pixels (P,) that are not chosen: what they see from now on is not known."""
    for pixel in range(len(states)):
        if not is_chosen(pixel, mask):
            states[pixel] = 0


@compiled
def end_runs(before, bits, stamps, states, keys):
    """End the runs that began before a time since the base; write their keys, and return their number."""
    written = 0
    for pixel in range(len(states)):
        state = states[pixel]
        if state & _COUNT and np.int64(stamps[pixel * STAMPS]) < before:
            keys[written] = passage_key(stamps, pixel, state, bits)
            written += 1
            states[pixel] = (state & 1) | _BEGUN
    return written


@compiled
def move_base(by, states, stamps):
    """Count the times of runs from a base that lies so much later; none of them began before it."""
    for pixel in range(len(states)):
        if states[pixel] & _COUNT:
            for k in range(pixel * STAMPS, (pixel + 1) * STAMPS):
                stamps[k] -= by


@compiled
def take_before(limit, keys, taken):
    """Move the keys (K,) below a limit to `taken`, and return their number; those that stay come first in `keys`."""
    stay = 0
    for i in range(len(keys)):
        key = keys[i]
        taken[i - stay] = key
        keys[stay] = key
        stay += key >= limit
    return len(keys) - stay


@compiled
def read_keys(keys, width, base_ns, bits, t_ns, x, y, n):
    """Write what keys (K,) stand for."""
    codes = (np.int64(1) << bits) - 1
    for i in range(len(keys)):
        code = keys[i] & codes
        row = (code >> 4) // width
        t_ns[i] = base_ns + (keys[i] >> bits)
        x[i] = (code >> 4) - row * width
        y[i] = row
        n[i] = code & 15


@compiled
def choose_passages(t_ns, x, y, n, fewest, mask, chosen):
    """Write the indices of passages (K,) of at least `fewest` events, one of `mask + 1` of them; return their number.

    Which ones depends on the passage alone: two windows choose the same, and one of four is among one of two.
    """
    count = 0
    for i in range(len(t_ns)):
        drawn = (np.uint64(t_ns[i]) * _ODD ^ (np.uint64(y[i]) << np.uint64(16) | np.uint64(x[i]))) * _ODD
        chosen[count] = i
        count += (n[i] >= fewest) & (drawn >> np.uint64(32) & mask == 0)
    return count
