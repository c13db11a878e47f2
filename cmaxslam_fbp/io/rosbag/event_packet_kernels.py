"""Compiled decoding of the other encodings of ROS event packets: `libcaer`, `libcaer_cmp`, `mono`.

`state[BASE]` is the packet's `time_base` in nanoseconds; the rest is zero at the start of a stream.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

STATE_SIZE = 7
BASE, LAST_US, HIGH, LOW, _X, _BASE_Y, _POLARITY = range(STATE_SIZE)


@compiled
def decode_libcaer(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32: x:15 y:15 p:1 valid:1, and 31 bits of microseconds, which may wrap in a packet.

    `state[LAST_US]` is -1 at the start of a packet.
    """
    base, now = state[BASE], state[LAST_US]
    while at < len(words) and count < len(t_ns):
        place = np.int64(words[at, 0])
        stamp = np.int64(words[at, 1]) & 0x7FFFFFFF
        at += 1
        now = stamp if now < 0 else now + ((stamp - now + 0x40000000) & 0x7FFFFFFF) - 0x40000000
        t_ns[count] = base + 1000 * now
        x[count] = place >> 17
        y[count] = (place >> 2) & 0x7FFF
        p[count] = (place >> 1) & 1
        count += 1
    state[LAST_US] = now
    return at, count


@compiled
def decode_libcaer_cmp(words, at, state, t_ns, x, y, p, count):
    """Decode uint16 words with a type in the high four bits; `state[HIGH]`, `state[LOW]` are 0 at a packet's start."""
    base, high, low, column = state[BASE], state[HIGH], state[LOW], state[_X]
    row, polarity = state[_BASE_Y], state[_POLARITY]
    now = base + 1000 * ((high << 12) | low)
    room = len(t_ns) - 8
    while at < len(words) and count <= room:
        word = np.int64(words[at])
        at += 1
        code = word >> 12
        if code == 3:  # one event
            t_ns[count] = now
            x[count] = column
            y[count] = word & 0x7FF
            p[count] = (word >> 11) & 1
            count += 1
        elif code == 2:
            column = word & 0x7FF
        elif code == 1:
            low = word & 0xFFF
            now = base + 1000 * ((high << 12) | low)
        elif code == 0:
            high = word & 0xFFF
            now = base + 1000 * ((high << 12) | low)
        elif code == 4:
            row = word & 0x7FF
            polarity = (word >> 11) & 1
        elif code == 5:  # up to eight events one below the other
            for i in range(8):
                t_ns[count] = now
                x[count] = column
                y[count] = row + i
                p[count] = polarity
                count += (word >> i) & 1
            row += 8
    state[HIGH], state[LOW], state[_X] = high, low, column
    state[_BASE_Y], state[_POLARITY] = row, polarity
    return at, count


@compiled
def decode_mono(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32: nanoseconds after the time base, and p:1 y:15 x:16."""
    base = state[BASE]
    while at < len(words) and count < len(t_ns):
        place = np.int64(words[at, 1])
        t_ns[count] = base + np.int64(words[at, 0])
        x[count] = place & 0xFFFF
        y[count] = (place >> 16) & 0x7FFF
        p[count] = place >> 31
        at += 1
        count += 1
    return at, count
