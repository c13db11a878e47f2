"""Compiled decoding of AEDAT 2 words of DAVIS cameras."""

# mypy: ignore-errors

import numpy as np

from cmaxslam_fbp.compiling import compiled

# As jAER's DavisChip has them: bit 31 is 0 for events, which are y:9 x:10 polarity:1 external:1 0:10 below it.
_NOT_AN_EVENT, _EXTERNAL = 1 << 31, 1 << 10
_IMU = (1 << 31) | (3 << 10)


@compiled
def decode_davis(words, before_us, last_column, last_row, t_ns, x, y, p, imu_t_ns, imu_words):
    """Take the events and the IMU words out of `words` (N, 2) uint32: address and microseconds, which wrap at 2^32.

    `before_us` is the unwrapped stamp before them, or -1 at the start. Columns and rows count from the right and from
    below in the file. Returns the number of events, that of IMU words, and the last unwrapped stamp.
    """
    events = imu = 0
    now_us = before_us
    for i in range(len(words)):
        address = np.int64(words[i, 0])
        stamp = np.int64(words[i, 1])
        if now_us < 0:
            now_us = stamp
        else:  # the nearest time that has these 32 bits
            now_us += ((stamp - now_us + 0x80000000) & 0xFFFFFFFF) - 0x80000000
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
