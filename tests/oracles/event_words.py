"""Words of event cameras, made one by one as their makers describe them: slow and obvious."""

import struct

import numpy as np

from cmaxslam_fbp.events import Events


def to_events(rows):
    """Return rows (t_us, x, y, p) as our own events."""
    t, x, y, p = np.array(rows, np.int64).reshape(-1, 4).T
    return Events(1000 * t, x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))


def evt3(rows, *, vectors=False):
    """Return the bytes of rows (t_us, x, y, p) in EVT 3.0; with vectors, eight or twelve neighbours share a word."""
    words, high, low, row = [], None, None, None
    i = 0
    while i < len(rows):
        t, x, y, p = rows[i]
        if t >> 12 != high:
            high = t >> 12
            words.append(0x8000 | high & 0xFFF)
        if t & 0xFFF != low:
            low = t & 0xFFF
            words.append(0x6000 | low)
        if y != row:
            row = y
            words.append(y)
        group = [r[1] for r in rows[i : i + 12] if (r[0], r[2], r[3]) == (t, y, p) and 0 <= r[1] - x < 12]
        if vectors and len(group) > 1 and group == sorted(set(group)):
            wide = group[-1] - x >= 8
            valid = sum(1 << (column - x) for column in group)
            words += [0x3000 | p << 11 | x, (0x4000 if wide else 0x5000) | valid]
            i += len(group)
        else:
            words.append(0x2000 | p << 11 | x)
            i += 1
    return struct.pack(f"<{len(words)}H", *words)


def evt2(rows):
    """Return the bytes of rows in EVT 2.0."""
    words, high = [], None
    for t, x, y, p in rows:
        if t >> 6 != high:
            high = t >> 6
            words.append(0x8 << 28 | high & 0xFFFFFFF)
        words.append(p << 28 | (t & 0x3F) << 22 | x << 11 | y)
    return struct.pack(f"<{len(words)}I", *words)


def evt21(rows, *, legacy=False):
    """Return the bytes of rows in EVT 2.1: neighbours of 32 columns share a word; `legacy` swaps its halves."""
    words, high = [], None
    i = 0
    while i < len(rows):
        t, x, y, p = rows[i]
        if t >> 6 != high:
            high = t >> 6
            words.append((0x8 << 28 | high & 0xFFFFFFF, 0))
        base, valid = x & ~31, 0
        while i < len(rows):
            t_next, x_next, y_next, p_next = rows[i]
            bit = 1 << (x_next & 31)
            if (t_next, y_next, p_next, x_next & ~31) != (t, y, p, base) or valid >= bit:
                break
            valid |= bit
            i += 1
        words.append((p << 28 | (t & 0x3F) << 22 | base << 11 | y, valid))
    return b"".join(struct.pack("<II", *(word if legacy else word[::-1])) for word in words)


def libcaer(rows, *, base_us=0):
    """Return the bytes of rows as libcaer's polarity events, stamps of 31 bits from `base_us` on."""
    return b"".join(
        struct.pack("<II", x << 17 | y << 2 | p << 1 | 1, (t - base_us) & 0x7FFFFFFF) for t, x, y, p in rows
    )


def libcaer_cmp(rows, *, base_us=0):
    """Return the bytes of rows in the compressed form of the libcaer driver: neighbours in a column share a word."""
    words, high, low, column = [], None, None, None
    i = 0
    while i < len(rows):
        t, x, y, p = rows[i]
        t -= base_us
        if t >> 12 != high:
            high = t >> 12
            words.append(high)
        if t & 0xFFF != low:
            low = t & 0xFFF
            words.append(0x1000 | low)
        if x != column:
            column = x
            words.append(0x2000 | x)
        group = [r[2] for r in rows[i : i + 8] if (r[0] - base_us, r[1], r[3]) == (t, x, p) and 0 <= r[2] - y < 8]
        if len(group) > 1 and group == sorted(set(group)):
            words += [0x4000 | p << 11 | y, 0x5000 | sum(1 << (row - y) for row in group)]
            i += len(group)
        else:
            words.append(0x3000 | p << 11 | y)
            i += 1
    return struct.pack(f"<{len(words)}H", *words)


def mono(rows, *, base_us=0):
    """Return the bytes of rows as 64-bit words: p:1 y:15 x:16 and nanoseconds:32 from `base_us` on."""
    return b"".join(struct.pack("<Q", p << 63 | y << 48 | x << 32 | 1000 * (t - base_us)) for t, x, y, p in rows)


def neighbours(draw, count, *, width=1280, height=720, start_us=0, duration_us=20_000):
    """Return rows (t_us, x, y, p) of which many lie side by side at the same time, in order of time."""
    rows = []
    while len(rows) < count:
        t = start_us + int(draw.integers(duration_us))
        x, y, p = int(draw.integers(width - 40)), int(draw.integers(height - 40)), int(draw.integers(2))
        kind = int(draw.integers(3))
        if kind == 0:
            rows.append((t, x, y, p))
        else:
            steps = sorted(set(draw.integers(0, 12, 9).tolist()))
            rows += [(t, x + s * (kind == 1), y + s * (kind == 2), p) for s in steps]
    rows.sort(key=lambda row: row[0])
    return rows
