"""Compiled decoding of Prophesee's event words: EVT 2.0, 2.1 and 3.0.

A decoder's `state` is an array of int64, zero at the start. Stamps are microseconds of which the words have the low
bits: 24 in EVT 3, 34 in EVT 2. Their high part may step back a little; a larger step back is a wrap: after 16.8 s in
EVT 3, where 41 ms are large as for the decoders of Prophesee and ROS, after 4.8 hours in EVT 2, where half of that is.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

STATE_SIZE = 7
_HIGH, _LOW, _KNOWN, _Y, _BASE_X, _POLARITY, UNKNOWN_WORDS = range(STATE_SIZE)

_SMALL_STEP_BACK_EVT3, _SMALL_STEP_BACK_EVT2 = 10, 1 << 27  # in units of the high part
_NO_TIME, _HIGH_ONLY, _WHOLE_TIME = 0, 1, 2


@compiled
def _unwrapped(high, before, bits, small_step_back):
    """Return the high part of the time with the wraps so far, of which a word has some bits."""
    last = before & ((1 << bits) - 1)
    wraps = before >> bits
    if last - high > small_step_back:
        wraps += 1
    elif high - last > (1 << bits) - small_step_back and wraps > 0:  # a step back over a wrap
        wraps -= 1
    return (wraps << bits) | high


@compiled
def decode_evt3(words, at, state, t_ns, x, y, p, count):
    """Decode uint16 words of EVT 3.0; events before the first whole stamp are left out. See `EventRoom`."""
    high, low, known, row = state[_HIGH], state[_LOW], state[_KNOWN], state[_Y]
    base, polarity, unknown = state[_BASE_X], state[_POLARITY], state[UNKNOWN_WORDS]
    now = 1000 * ((high << 12) | low)
    room = len(t_ns) - 12
    while at < len(words) and count <= room:
        word = np.int64(words[at])
        at += 1
        code = word >> 12
        if code == 0x2:  # one event
            t_ns[count] = now
            x[count] = word & 0x7FF
            y[count] = row
            p[count] = (word >> 11) & 1
            count += known == _WHOLE_TIME
        elif code == 0x0:
            row = word & 0x7FF
        elif code == 0x6:
            low = word & 0xFFF
            now = 1000 * ((high << 12) | low)
            if known == _HIGH_ONLY:
                known = _WHOLE_TIME
        elif code == 0x3:
            base = word & 0x7FF
            polarity = (word >> 11) & 1
        elif code == 0x4 or code == 0x5:  # up to 12 or 8 events side by side
            width = 12 if code == 0x4 else 8
            if known == _WHOLE_TIME:
                for i in range(width):
                    t_ns[count] = now
                    x[count] = base + i
                    y[count] = row
                    p[count] = polarity
                    count += (word >> i) & 1
            base += width
        elif code == 0x8:
            high = word & 0xFFF if known == _NO_TIME else _unwrapped(word & 0xFFF, high, 12, _SMALL_STEP_BACK_EVT3)
            now = 1000 * ((high << 12) | low)
            known = max(known, _HIGH_ONLY)
        elif code == 0x1 or (code == 0x9 and word != 0x9999) or 0xB <= code <= 0xD:
            unknown += 1
        # 0x7 and 0xF continue others, 0xA is a trigger, 0xE another message, 0x9999 padding
    state[_HIGH], state[_LOW], state[_KNOWN], state[_Y] = high, low, known, row
    state[_BASE_X], state[_POLARITY], state[UNKNOWN_WORDS] = base, polarity, unknown
    return at, count


@compiled
def decode_evt2(words, at, state, t_ns, x, y, p, count):
    """Decode uint32 words of EVT 2.0; events before the first high part of the time are left out. See `EventRoom`."""
    high, known, unknown = state[_HIGH], state[_KNOWN], state[UNKNOWN_WORDS]
    room = len(t_ns)
    while at < len(words) and count < room:
        word = np.int64(words[at])
        at += 1
        code = word >> 28
        if code <= 0x1:
            t_ns[count] = 1000 * ((high << 6) | ((word >> 22) & 0x3F))
            x[count] = (word >> 11) & 0x7FF
            y[count] = word & 0x7FF
            p[count] = code
            count += known != _NO_TIME
        elif code == 0x8:
            high = (
                word & 0xFFFFFFF if known == _NO_TIME else _unwrapped(word & 0xFFFFFFF, high, 28, _SMALL_STEP_BACK_EVT2)
            )
            known = _WHOLE_TIME
        elif code != 0xA and code != 0xE and code != 0xF:  # triggers and others
            unknown += 1
    state[_HIGH], state[_KNOWN], state[UNKNOWN_WORDS] = high, known, unknown
    return at, count


@compiled
def _decode_evt21(words, head, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32 of EVT 2.1: column `head` has type, time and place, the other one 32 pixels."""
    high, known, unknown = state[_HIGH], state[_KNOWN], state[UNKNOWN_WORDS]
    room = len(t_ns) - 32
    while at < len(words) and count <= room:
        word = np.int64(words[at, head])
        valid = np.int64(words[at, 1 - head])
        at += 1
        code = word >> 28
        if code <= 0x1:
            if known != _NO_TIME:
                now = 1000 * ((high << 6) | ((word >> 22) & 0x3F))
                column = (word >> 11) & 0x7FF
                while valid != 0:
                    if valid & 0xFF == 0:  # most words have few events
                        valid >>= 8
                        column += 8
                        continue
                    t_ns[count] = now
                    x[count] = column
                    y[count] = word & 0x7FF
                    p[count] = code
                    count += valid & 1
                    valid >>= 1
                    column += 1
        elif code == 0x8:
            high = (
                word & 0xFFFFFFF if known == _NO_TIME else _unwrapped(word & 0xFFFFFFF, high, 28, _SMALL_STEP_BACK_EVT2)
            )
            known = _WHOLE_TIME
        elif code != 0xA and code != 0xE and code != 0xF:
            unknown += 1
    state[_HIGH], state[_KNOWN], state[UNKNOWN_WORDS] = high, known, unknown
    return at, count


@compiled
def decode_evt21(words, at, state, t_ns, x, y, p, count):
    """Decode EVT 2.1 as 64-bit little-endian words, (N, 2) uint32 with the pixels first. See `EventRoom`."""
    return _decode_evt21(words, 1, at, state, t_ns, x, y, p, count)


@compiled
def decode_evt21_legacy(words, at, state, t_ns, x, y, p, count):
    """Decode EVT 2.1 whose halves are swapped, as the IMX636 gives it: the pixels come last. See `EventRoom`."""
    return _decode_evt21(words, 0, at, state, t_ns, x, y, p, count)
