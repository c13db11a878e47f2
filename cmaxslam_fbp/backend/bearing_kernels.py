"""Compiled look-up of the directions that pixels see."""

# mypy: ignore-errors

from cmaxslam_fbp.compiling import compiled


@compiled
def look_up(x, y, table, out):
    """Write the bearings (3, N) of events at pixels `x`, `y` (N,) from the table (height, width, 3)."""
    for i in range(len(x)):
        row, column = y[i], x[i]
        out[0, i] = table[row, column, 0]
        out[1, i] = table[row, column, 1]
        out[2, i] = table[row, column, 2]
