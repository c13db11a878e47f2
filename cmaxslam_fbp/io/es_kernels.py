"""Compiled decoding of Event Stream bytes.

An event is a byte with the microseconds since the last one and the polarity, then x and y as little-endian uint16; rows
count from below. `state` is the time in microseconds, the number of bytes at the end that belong to an event which goes
on behind them, and the last row.
"""

# mypy: ignore-errors

from cmaxslam_fbp.compiling import compiled

STATE_SIZE = 3
_NOW, LEFT_OVER, LAST_ROW = range(STATE_SIZE)


@compiled
def _decode(data, at, state, t_ns, x, y, p, count, time_shift):
    """Decode bytes; `time_shift` is the number of bits beside the time: 1 for a DVS, 2 for an ATIS."""
    now, last_row = state[_NOW], state[LAST_ROW]
    longest = 0xFF >> time_shift
    state[LEFT_OVER] = 0
    while at < len(data) and count < len(t_ns):
        first = int(data[at])
        if first >> time_shift == longest:  # no event, but time that passes: one or, for an ATIS, up to three times
            now += longest * (first & ((1 << time_shift) - 1))
            at += 1
            continue
        if at + 5 > len(data):
            state[LEFT_OVER] = len(data) - at
            at = len(data)
            break
        now += first >> time_shift
        t_ns[count] = 1000 * now
        x[count] = int(data[at + 1]) | int(data[at + 2]) << 8
        y[count] = last_row - (int(data[at + 3]) | int(data[at + 4]) << 8)
        p[count] = (first >> (time_shift - 1)) & 1
        at += 5
        count += 1 if time_shift == 1 or first & 1 == 0 else 0  # else the exposure of an ATIS
    state[_NOW] = now
    return at, count


@compiled
def decode_dvs(data, at, state, t_ns, x, y, p, count):
    """Decode the bytes of a DVS stream. See `EventRoom`."""
    return _decode(data, at, state, t_ns, x, y, p, count, 1)


@compiled
def decode_atis(data, at, state, t_ns, x, y, p, count):
    """Decode the brightness changes of an ATIS stream. See `EventRoom`."""
    return _decode(data, at, state, t_ns, x, y, p, count, 2)
