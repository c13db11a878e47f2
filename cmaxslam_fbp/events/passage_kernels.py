"""Compiled search for the passages of edges over pixels."""

# mypy: ignore-errors

from numba import njit

LONGEST_RUN = 8  # events: a longer run counts as several


@njit(cache=True, nogil=True, error_model="numpy")
def centre_ns(times_ns, first, count):
    """Return the time of the `count / 2`-th event (counted from 1) of those from index `first` on, in between halfway.

    A single event has no event half a threshold before it: its own time is taken.
    """
    if count < 2:
        return times_ns[first]
    k = first + count // 2 - 1
    return times_ns[k] if count % 2 == 0 else (times_ns[k] + times_ns[k + 1]) // 2


@njit(cache=True, nogil=True, error_model="numpy")
def add_events(t_ns, x, y, p, width, longest_ns, fewest, times_ns, counts, polarities, out_ns, out_code):
    """Add events (N,) to the runs of their pixels; write the runs that end by it, and return how many they are.

    `times_ns` (P LONGEST_RUN,) holds the times of the events of each pixel's run, `counts` and `polarities` (P,) their
    number and polarity. A run of at least `fewest` events is written as its centre and as `2 pixel + polarity`.
    """
    written = 0
    for i in range(len(t_ns)):
        pixel = y[i] * width + x[i]
        first = pixel * LONGEST_RUN
        count = counts[pixel]
        continues = 0 < count < LONGEST_RUN and polarities[pixel] == p[i] and t_ns[i] - times_ns[first] <= longest_ns
        if not continues:
            if count >= fewest:
                out_ns[written] = centre_ns(times_ns, first, count)
                out_code[written] = 2 * pixel + polarities[pixel]
                written += 1
            count = 0
            polarities[pixel] = p[i]
        times_ns[first + count] = t_ns[i]
        counts[pixel] = count + 1
    return written


@njit(cache=True, nogil=True, error_model="numpy")
def end_runs(before_ns, fewest, times_ns, counts, polarities, out_ns, out_code):
    """Write the runs that began before a time, as `add_events` does, and return how many they are."""
    written = 0
    for pixel in range(len(counts)):
        count = counts[pixel]
        first = pixel * LONGEST_RUN
        if count > 0 and times_ns[first] < before_ns:
            if count >= fewest:
                out_ns[written] = centre_ns(times_ns, first, count)
                out_code[written] = 2 * pixel + polarities[pixel]
                written += 1
            counts[pixel] = 0
    return written
