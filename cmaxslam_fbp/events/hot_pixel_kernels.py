"""Compiled search for hot pixels: small islands of pixels that fire far more often than all around them."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

LARGEST_ISLAND = 4  # pixels: an edge that lingers is longer, a defect is not
_SIGMAS = 5.0  # by which a count exceeds what chance makes of the largest one beside it


@compiled
def count_events(x, y, width, counts):
    """Add the events (N,) to the counts (P,) of their pixels."""
    for i in range(len(x)):
        counts[np.int64(y[i]) * width + x[i]] += np.float32(1)


@compiled
def drop_events(t_ns, x, y, p, width, hot, dropped, out_t_ns, out_x, out_y, out_p):
    """Write the events (N,) of pixels that are not hot, and return their number; add the others to `dropped` (P,)."""
    kept = 0
    for i in range(len(t_ns)):
        pixel = np.int64(y[i]) * width + x[i]
        if hot[pixel]:
            dropped[pixel] += 1
            continue
        out_t_ns[kept], out_x[kept], out_y[kept], out_p[kept] = t_ns[i], x[i], y[i], p[i]
        kept += 1
    return kept


@compiled
def stands_out(count, around, factor):
    """Return whether a pixel's count is more than a factor, and more than chance, above one beside it."""
    return count > factor * around and count > around + _SIGMAS * np.sqrt(around + 1)


@compiled
def has_few_rivals(counts, hot, pixel, width, factor):
    """Return whether so few neighbours come near a pixel's count that it can lie on an island."""
    column, row, height = pixel % width, pixel // width, len(counts) // width
    rivals = 0
    for y in range(max(row - 1, 0), min(row + 2, height)):
        for x in range(max(column - 1, 0), min(column + 2, width)):
            other = y * width + x
            if other != pixel and not hot[other] and factor * counts[other] >= counts[pixel]:
                rivals += 1
    return rivals < LARGEST_ISLAND


@compiled
def largest_beside(counts, hot, island, size, width):
    """Return the pixel with the largest count beside the first `size` pixels of an island that is not hot; or -1."""
    height = len(counts) // width
    found = -1
    for k in range(size):
        column, row = island[k] % width, island[k] // width
        for y in range(max(row - 1, 0), min(row + 2, height)):
            for x in range(max(column - 1, 0), min(column + 2, width)):
                other = y * width + x
                is_beside = not hot[other]
                for j in range(size):
                    is_beside &= other != island[j]
                if is_beside and (found < 0 or counts[other] > counts[found]):
                    found = other
    return found


@compiled
def find_island(counts, hot, pixel, width, factor, island):
    """Write the pixels of the hot island that a pixel belongs to; return their number, 0 where there is none.

    It grows by the largest count beside it, until all its counts stand out from all beside it.
    """
    island[0] = pixel
    least = counts[pixel]
    for size in range(1, LARGEST_ISLAND + 1):
        beside = largest_beside(counts, hot, island, size, width)
        if beside < 0 or stands_out(least, counts[beside], factor):
            return size
        if size < LARGEST_ISLAND:
            island[size] = beside
            least = min(least, counts[beside])
    return 0


@compiled
def mark_hot(counts, fewest, width, factor, hot):
    """Mark the pixels (P,) of all islands with at least so many events each."""
    island = np.empty(LARGEST_ISLAND, np.int64)
    for pixel in range(len(counts)):
        if counts[pixel] < fewest or hot[pixel] or not has_few_rivals(counts, hot, pixel, width, factor):
            continue
        size = find_island(counts, hot, pixel, width, factor, island)
        enough = True
        for k in range(size):
            enough &= counts[island[k]] >= fewest
        if enough:
            for k in range(size):
                hot[island[k]] = True


@compiled
def release(counts, fewest, width, factor, hot):
    """Unmark pixels that do not stand out any more by half as much."""
    island = np.empty(1, np.int64)
    for pixel in range(len(counts)):
        if hot[pixel]:
            island[0] = pixel
            beside = largest_beside(counts, hot, island, 1, width)
            around = counts[beside] if beside >= 0 else np.float32(0)
            if counts[pixel] < 0.5 * fewest or counts[pixel] <= 0.5 * factor * around:
                hot[pixel] = False


@compiled
def add_decayed(counts, factor, added):
    """`counts = factor counts + added`, and `added = 0`, both (P,)."""
    for pixel in range(len(counts)):
        counts[pixel] = factor * counts[pixel] + added[pixel]
        added[pixel] = 0
