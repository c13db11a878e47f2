"""Compiled passes of a separable symmetric filter and of its transpose, in the precision of the image.

`taps[k]` weighs the neighbours at distance `k`; `rows` and `columns` tell, for every line of the image extended by the
filter's radius, which line of the image stands there (-1: zeros).
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from cmaxslam_fbp.compiling import compiled


@compiled
def _filter_line(extended, taps, out):
    """Write `sum_k taps[|k|] extended[j + radius + k]`."""
    radius, size = taps.size - 1, out.size
    centre = extended[radius : radius + size]
    for j in range(size):
        out[j] = taps[0] * centre[j]
    for k in range(1, radius + 1):
        before, after = extended[radius - k : radius - k + size], extended[radius + k : radius + k + size]
        tap = taps[k]
        for j in range(size):
            out[j] += tap * (before[j] + after[j])


@compiled
def _add_neighbours(image, above, below, tap, out):
    """Add `tap` times the lines `above` and `below` of the image, as far as they exist (not negative)."""
    if above >= 0 and below >= 0:
        one, other = image[above], image[below]
        for j in range(out.size):
            out[j] += tap * (one[j] + other[j])
    elif above >= 0 or below >= 0:
        line = image[max(above, below)]
        for j in range(out.size):
            out[j] += tap * line[j]


@compiled
def filter_rows(image, taps, rows, out):
    """Filter along the columns: `out[i] = sum_k taps[|k|] image[rows[i + radius + k]]`."""
    radius = taps.size - 1
    for i in range(image.shape[0]):
        line, centre = out[i], image[i]
        for j in range(line.size):
            line[j] = taps[0] * centre[j]
        for k in range(1, radius + 1):
            _add_neighbours(image, rows[i + radius - k], rows[i + radius + k], taps[k], line)


@compiled
def filter_rows_transposed(image, taps, rows, margin, out):
    """Transpose of `filter_rows`: each row of the extended image gathers, and those outside are folded back.

    `margin` (width,) takes one row.
    """
    radius, height = taps.size - 1, image.shape[0]
    for i in range(height):
        _gather_row(image, taps, i, out[i])
    for m in range(radius):
        for i in (m - radius, height + m):
            target = rows[i + radius]
            if target >= 0:
                _gather_row(image, taps, i, margin)
                line = out[target]
                for j in range(line.size):
                    line[j] += margin[j]


@compiled
def _gather_row(image, taps, i, out):
    """Write `sum_k taps[|k|] image[i + k]` over the rows that exist; `i` itself need not."""
    radius, height = taps.size - 1, image.shape[0]
    out[:] = 0
    if 0 <= i < height:
        centre = image[i]
        for j in range(out.size):
            out[j] = taps[0] * centre[j]
    for k in range(1, radius + 1):
        above = i - k if i - k < height else -1
        below = i + k if i + k < height else -1
        _add_neighbours(image, above, below, taps[k], out)


@compiled
def filter_columns(image, taps, columns, extended, out):
    """Filter along the rows; `extended` (width + 2 radius,) takes one extended row."""
    radius, width = taps.size - 1, image.shape[1]
    for i in range(image.shape[0]):
        for j in range(width):
            extended[radius + j] = image[i, j]
        for m in range(radius):
            for place in (m, radius + width + m):
                source = columns[place]
                extended[place] = image[i, source] if source >= 0 else extended.dtype.type(0)
        _filter_line(extended, taps, out[i])


@compiled
def filter_columns_transposed(image, taps, columns, extended, spread, out):
    """Transpose of `filter_columns`: spread each row over its extension, then fold the margins back.

    `extended` (width + 4 radius,) and `spread` (width + 2 radius,) take one row.
    """
    radius, width = taps.size - 1, image.shape[1]
    extended[: 2 * radius] = 0
    extended[2 * radius + width :] = 0
    for i in range(image.shape[0]):
        for j in range(width):
            extended[2 * radius + j] = image[i, j]
        _filter_line(extended, taps, spread)
        for j in range(width):
            out[i, j] = spread[radius + j]
        for m in range(radius):
            for place in (m, radius + width + m):
                target = columns[place]
                if target >= 0:
                    out[i, target] += spread[place]
