"""Compiled search for the first events of bursts."""

# mypy: ignore-errors

from numba import njit


@njit(cache=True, nogil=True)
def find_first(t_ns, x, y, p, dead_ns, last_ns, keep):
    """Write which events (N,) come more than `dead_ns` after the last one in `last_ns` (2, height, width)."""
    for i in range(len(t_ns)):
        before = last_ns[p[i], y[i], x[i]]
        keep[i] = t_ns[i] - before > dead_ns
        last_ns[p[i], y[i], x[i]] = t_ns[i]
