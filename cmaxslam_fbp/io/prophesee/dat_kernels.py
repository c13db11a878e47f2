"""Compiled decoding of the events of DAT files; `state[0]` is the last stamp in microseconds, -1 at the start."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled


@compiled
def _decode(words, at, state, t_ns, x, y, p, count, x_bits, y_bits):
    """Decode words (N, 2) uint32: microseconds, which wrap at 2^32, and x, y and polarity from the low bits on."""
    now = state[0]
    while at < len(words) and count < len(t_ns):
        stamp = np.int64(words[at, 0])
        place = np.int64(words[at, 1])
        at += 1
        # the nearest time that has these 32 bits
        now = stamp if now < 0 else now + ((stamp - now + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        t_ns[count] = 1000 * now
        x[count] = place & ((1 << x_bits) - 1)
        y[count] = (place >> x_bits) & ((1 << y_bits) - 1)
        p[count] = (place >> (x_bits + y_bits)) & 1
        count += 1
    state[0] = now
    return at, count


@compiled
def decode_dat1(words, at, state, t_ns, x, y, p, count):
    """Decode x:9 y:8 p:1, as the ATIS has them. See `EventRoom`."""
    return _decode(words, at, state, t_ns, x, y, p, count, 9, 8)


@compiled
def decode_dat2(words, at, state, t_ns, x, y, p, count):
    """Decode x:14 y:14 p:4. See `EventRoom`."""
    return _decode(words, at, state, t_ns, x, y, p, count, 14, 14)
