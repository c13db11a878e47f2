"""Compiled search for the passages of edges over pixels.

A passage is written as a key, `(t - base) << bits | 16 pixel + n` with the number `n` of its events: to sort keys is to
sort passages by time.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

LONGEST_RUN = 8  # events: a longer run counts as several
_PER_BUCKET = 4  # keys of a bucket, in the mean


@compiled
def passage_key(times_ns, pixel, state, base_ns, bits):
    """Return the key of a pixel's run: at the time of its `n / 2`-th event, counted from 1, or halfway between two.

    A single event has no event before it to be between: its own time is taken.
    """
    count = np.int64(state >> 1)
    middle = pixel * LONGEST_RUN + max(count >> 1, 1) - 1
    after = middle + (count & 1 if count > 1 else 0)
    t_ns = (times_ns[middle] + times_ns[after]) >> 1
    return ((t_ns - base_ns) << bits) | (16 * pixel + count)


@compiled
def add_events(t_ns, x, y, p, width, longest_ns, base_ns, bits, times_ns, states, keys):
    """Add events (N,) to the runs of their pixels; write the keys of those that end by it, and return their number.

    `times_ns` (P LONGEST_RUN,) holds the times of the events of each pixel's run, and `states` (P,) twice their number
    plus their polarity.
    """
    written = 0
    for i in range(len(t_ns)):
        pixel = np.int64(y[i]) * width + x[i]
        state = states[pixel]
        count = np.int64(state >> 1)
        first = pixel * LONGEST_RUN
        t = t_ns[i]
        if (count == LONGEST_RUN) | (state & 1 != p[i]) | (t - times_ns[first] > longest_ns):
            if count > 0:
                keys[written] = passage_key(times_ns, pixel, state, base_ns, bits)
                written += 1
            count = 0
        times_ns[first + count] = t
        states[pixel] = ((count + 1) << 1) | p[i]
    return written


@compiled
def end_runs(before_ns, base_ns, bits, times_ns, states, keys):
    """End the runs that began before a time; write their keys, and return their number."""
    written = 0
    for pixel in range(len(states)):
        state = states[pixel]
        if state > 1 and times_ns[pixel * LONGEST_RUN] < before_ns:
            keys[written] = passage_key(times_ns, pixel, state, base_ns, bits)
            written += 1
            states[pixel] = state & 1
    return written


@compiled
def sort_keys(keys, ordered):
    """Write keys (K,) in order: into buckets by their leading bits, then each bucket by insertion."""
    if len(keys) == 0:
        return
    lowest, highest = keys[0], keys[0]
    for key in keys:
        lowest, highest = min(lowest, key), max(highest, key)
    buckets = max(len(keys) // _PER_BUCKET, 1)
    shift = 0
    while (highest - lowest) >> shift >= buckets:
        shift += 1
    places = np.zeros(buckets + 1, np.int64)
    for key in keys:
        places[((key - lowest) >> shift) + 1] += 1
    for bucket in range(buckets):
        places[bucket + 1] += places[bucket]
    for key in keys:
        bucket = (key - lowest) >> shift
        ordered[places[bucket]] = key
        places[bucket] += 1
    for i in range(1, len(keys)):
        key = ordered[i]
        j = i
        while j > 0 and ordered[j - 1] > key:
            ordered[j] = ordered[j - 1]
            j -= 1
        ordered[j] = key


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
