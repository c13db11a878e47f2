"""Compiled lookup of the events of a packet: points of the normalised plane, and times to the reference."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

_NS = np.float32(1e-9)


@compiled
def look_up(t_ns, x, y, reference_ns, table, width, height, out_x, out_y, out_dt):
    """Write the undistorted points and `(t_ref - t)` in seconds; return how many events lie outside the sensor.

    `table` (2 width height,) holds the point of every pixel, row by row. Events outside the sensor get its first one.
    """
    outside = 0
    for i in range(len(x)):
        column, row = np.int64(x[i]), np.int64(y[i])
        if column >= width or row >= height:
            outside += 1
            column = row = np.int64(0)
        place = 2 * (row * width + column)
        out_x[i] = table[place]
        out_y[i] = table[place + 1]
        out_dt[i] = np.float32(reference_ns - t_ns[i]) * _NS
    return outside


@compiled
def signs(p, out):
    """Write 1 for events of positive polarity and -1 for the others."""
    for i in range(len(p)):
        out[i] = np.float32(1) if p[i] else np.float32(-1)
