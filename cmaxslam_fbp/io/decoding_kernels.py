"""Compiled decoding of the binary words of cameras and their drivers.

Most loops are decoders as `decoding.EventRoom` calls them. What one has to remember between two calls it keeps in
`state` (STATE_SIZE,) int64, all zero at the start unless its docstring says otherwise.

Stamps are microseconds of which the words have the low bits: a decoder counts on from one stamp to the next.
"""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

STATE_SIZE = 15
BASE_NS, NOW_US, HIGH, LOW, _KNOWN, _COLUMN, _ROW, _POLARITY, UNKNOWN_WORDS, LEFT_OVER = range(10)
HEAD, LAST_ROW, X_BITS, Y_BITS, FLAG_BITS = range(10, 15)  # that the caller says

# The high part of a time may step back a little; a larger step back is a wrap: after 16.8 s in EVT 3, where 41 ms are
# large as for the decoders of Prophesee and ROS, after 4.8 hours in EVT 2, where half of that is.
_SMALL_STEP_BACK_EVT3, _SMALL_STEP_BACK_EVT2 = 10, 1 << 27  # in units of the high part
_NO_TIME, _HIGH_ONLY, _WHOLE_TIME = 0, 1, 2

_LARGEST_US = 9_000_000_000_000_000  # larger stamps, which no clock shows, stay too large instead of wrapping

# AEDAT 2, as jAER's DavisChip has it: bit 31 is 0 for events, which are y:9 x:10 polarity:1 external:1 0:10 below it.
_NOT_AN_EVENT, _EXTERNAL = 1 << 31, 1 << 10
_IMU = (1 << 31) | (3 << 10)


@compiled(inlined=True)
def _nearest(stamp, now_us, bits):
    """Return the time nearest to the last one of which a stamp has the low bits; at the start, -1, the stamp."""
    half = 1 << (bits - 1)
    return stamp if now_us < 0 else now_us + ((stamp - now_us + half) & (2 * half - 1)) - half


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
    """Decode uint16 words of Prophesee's EVT 3.0; events before the first whole stamp are left out."""
    high, low, known, row = state[HIGH], state[LOW], state[_KNOWN], state[_ROW]
    base, polarity, unknown = state[_COLUMN], state[_POLARITY], state[UNKNOWN_WORDS]
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
            high = _unwrapped(word & 0xFFF, high, 12, _SMALL_STEP_BACK_EVT3)
            now = 1000 * ((high << 12) | low)
            known = max(known, _HIGH_ONLY)
        elif code == 0x1 or (code == 0x9 and word != 0x9999) or 0xB <= code <= 0xD:
            unknown += 1
        # 0x7 and 0xF continue others, 0xA is a trigger, 0xE another message, 0x9999 padding
    state[HIGH], state[LOW], state[_KNOWN], state[_ROW] = high, low, known, row
    state[_COLUMN], state[_POLARITY], state[UNKNOWN_WORDS] = base, polarity, unknown
    return at, count


@compiled
def decode_evt2(words, at, state, t_ns, x, y, p, count):
    """Decode uint32 words of Prophesee's EVT 2.0; events before the first high part of the time are left out."""
    high, known, unknown = state[HIGH], state[_KNOWN], state[UNKNOWN_WORDS]
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
            high = _unwrapped(word & 0xFFFFFFF, high, 28, _SMALL_STEP_BACK_EVT2)
            known = _WHOLE_TIME
        elif code != 0xA and code != 0xE and code != 0xF:  # triggers and others
            unknown += 1
    state[HIGH], state[_KNOWN], state[UNKNOWN_WORDS] = high, known, unknown
    return at, count


@compiled
def decode_evt21(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32 of Prophesee's EVT 2.1, of which one has type, time and place, the other 32 pixels.

    The first is that of column `state[HEAD]`: 1 in 64-bit little-endian words, 0 where their halves are swapped, as the
    IMX636 gives them.
    """
    high, known, unknown, head = state[HIGH], state[_KNOWN], state[UNKNOWN_WORDS], state[HEAD]
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
            high = _unwrapped(word & 0xFFFFFFF, high, 28, _SMALL_STEP_BACK_EVT2)
            known = _WHOLE_TIME
        elif code != 0xA and code != 0xE and code != 0xF:
            unknown += 1
    state[HIGH], state[_KNOWN], state[UNKNOWN_WORDS] = high, known, unknown
    return at, count


@compiled
def decode_dat(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32 of DAT files: microseconds, and x, y and polarity from the low bits on.

    Of x and y there are `state[X_BITS]` and `state[Y_BITS]` bits. `state[NOW_US]` is -1 at the start.
    """
    now, x_bits, y_bits = state[NOW_US], state[X_BITS], state[Y_BITS]
    while at < len(words) and count < len(t_ns):
        now = _nearest(np.int64(words[at, 0]), now, 32)
        place = np.int64(words[at, 1])
        at += 1
        t_ns[count] = 1000 * now
        x[count] = place & ((1 << x_bits) - 1)
        y[count] = (place >> x_bits) & ((1 << y_bits) - 1)
        p[count] = (place >> (x_bits + y_bits)) & 1
        count += 1
    state[NOW_US] = now
    return at, count


@compiled
def decode_es(data, at, state, t_ns, x, y, p, count):
    """Decode bytes of an Event Stream: microseconds since the last event and flags, then x and y as uint16.

    There are `state[FLAG_BITS]` flags: one of a DVS; two of an ATIS, whose exposures are passed over. Rows count from
    below, up to `state[LAST_ROW]`. `state[LEFT_OVER]` is how many bytes at the end belong to an event that goes on
    behind them.
    """
    now, last_row, flag_bits = state[NOW_US], state[LAST_ROW], state[FLAG_BITS]
    longest = 0xFF >> flag_bits
    state[LEFT_OVER] = 0
    while at < len(data) and count < len(t_ns):
        first = int(data[at])
        if first >> flag_bits == longest:  # no event, but time that passes: one or, for an ATIS, up to three times
            now += longest * (first & ((1 << flag_bits) - 1))
            at += 1
            continue
        if at + 5 > len(data):
            state[LEFT_OVER] = len(data) - at
            at = len(data)
            break
        now += first >> flag_bits
        t_ns[count] = 1000 * now
        x[count] = int(data[at + 1]) | int(data[at + 2]) << 8
        y[count] = last_row - (int(data[at + 3]) | int(data[at + 4]) << 8)
        p[count] = (first >> (flag_bits - 1)) & 1
        at += 5
        count += 1 if flag_bits == 1 or first & 1 == 0 else 0  # else the exposure of an ATIS
    state[NOW_US] = now
    return at, count


@compiled
def decode_libcaer(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32 of libcaer, in ROS packets and AEDAT 3: x:15 y:15 p:1 valid:1, 31 bits of time.

    Times count from `state[BASE_NS]`; `state[NOW_US]` is -1 at the start of a packet.
    """
    base, now = state[BASE_NS], state[NOW_US]
    while at < len(words) and count < len(t_ns):
        place = np.int64(words[at, 0])
        now = _nearest(np.int64(words[at, 1]) & 0x7FFFFFFF, now, 31)
        at += 1
        t_ns[count] = base + 1000 * now
        x[count] = place >> 17
        y[count] = (place >> 2) & 0x7FFF
        p[count] = (place >> 1) & 1
        count += 1
    state[NOW_US] = now
    return at, count


@compiled
def decode_libcaer_cmp(words, at, state, t_ns, x, y, p, count):
    """Decode uint16 words of ROS packets with a type in the high four bits; times count from `state[BASE_NS]`.

    `state[HIGH]` and `state[LOW]` are 0 at the start of a packet.
    """
    base, high, low, column = state[BASE_NS], state[HIGH], state[LOW], state[_COLUMN]
    row, polarity = state[_ROW], state[_POLARITY]
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
    state[HIGH], state[LOW], state[_COLUMN] = high, low, column
    state[_ROW], state[_POLARITY] = row, polarity
    return at, count


@compiled
def decode_mono(words, at, state, t_ns, x, y, p, count):
    """Decode words (N, 2) uint32 of ROS packets: nanoseconds after `state[BASE_NS]`, and p:1 y:15 x:16."""
    base = state[BASE_NS]
    while at < len(words) and count < len(t_ns):
        place = np.int64(words[at, 1])
        t_ns[count] = base + np.int64(words[at, 0])
        x[count] = place & 0xFFFF
        y[count] = (place >> 16) & 0x7FFF
        p[count] = place >> 31
        at += 1
        count += 1
    return at, count


@compiled
def decode_aedat4(words, at, state, t_ns, x, y, p, count):
    """Decode structs as (N, 2) int64: microseconds, and from the low bits on x:16 y:16 polarity:8."""
    while at < len(words) and count < len(t_ns):
        place = words[at, 1]
        t_ns[count] = 1000 * min(max(words[at, 0], -_LARGEST_US), _LARGEST_US)
        x[count] = place & 0xFFFF
        y[count] = (place >> 16) & 0xFFFF
        p[count] = 1 if (place >> 32) & 0xFF != 0 else 0
        at += 1
        count += 1
    return at, count


@compiled
def decode_davis(words, now_us, last_column, last_row, t_ns, x, y, p, imu_t_ns, imu_words):
    """Take the events and the IMU words of AEDAT 2 out of `words` (N, 2) uint32: address and microseconds.

    `now_us` is the stamp before them, or -1 at the start. Columns and rows count from the right and from below in the
    file. Returns the number of events, that of IMU words, and the last stamp.
    """
    events = imu = 0
    for i in range(len(words)):
        address = np.int64(words[i, 0])
        now_us = _nearest(np.int64(words[i, 1]), now_us, 32)
        if address & (_NOT_AN_EVENT | _EXTERNAL) == 0:
            t_ns[events] = 1000 * now_us
            x[events] = last_column - ((address >> 12) & 0x3FF)
            y[events] = last_row - ((address >> 22) & 0x1FF)
            p[events] = (address >> 11) & 1
            events += 1
        elif address & _IMU == _IMU:
            imu_t_ns[imu] = 1000 * now_us
            imu_words[imu] = address
            imu += 1
    return events, imu, now_us
