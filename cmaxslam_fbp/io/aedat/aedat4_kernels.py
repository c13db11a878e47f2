"""Compiled decoding of the events of AEDAT 4 packets."""

# mypy: ignore-errors

from cmaxslam_fbp.compiling import compiled

_LARGEST_US = 9_000_000_000_000_000  # larger stamps, which no clock shows, stay too large instead of wrapping


@compiled
def decode_events(words, at, state, t_ns, x, y, p, count):
    """Decode structs as (N, 2) int64: microseconds, and from the low bits on x:16 y:16 polarity:8. See `EventRoom`."""
    while at < len(words) and count < len(t_ns):
        place = words[at, 1]
        t_ns[count] = 1000 * min(max(words[at, 0], -_LARGEST_US), _LARGEST_US)
        x[count] = place & 0xFFFF
        y[count] = (place >> 16) & 0xFFFF
        p[count] = 1 if (place >> 32) & 0xFF != 0 else 0
        at += 1
        count += 1
    return at, count
