"""The machine that a figure was measured on."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

BINS = 200 * 150
EVENTS = 20_000


def cpu_name() -> str:
    """Return the processor's name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def best_us(call: Callable[[], object], seconds: float) -> float:
    """Return the shortest duration of a call in microseconds, over at least three calls and so many seconds."""
    call()
    best, repeats, end = np.inf, 0, time.perf_counter() + seconds
    while repeats < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        call()
        best, repeats = min(best, time.perf_counter() - began), repeats + 1
    return float(best) * 1e6


def calibration_us(events: int = EVENTS, seconds: float = 0.1) -> float:
    """Return the time of one `np.bincount` over so many events whose bins are known: the least that binning costs."""
    indices = np.random.default_rng(0).integers(0, BINS, events)
    return best_us(lambda: np.bincount(indices, minlength=BINS), seconds)


def describe_machine() -> str:
    """Return one line: processor, cores, calibration."""
    return f"{cpu_name()}, {os.cpu_count()} cores; np.bincount of 20,000 events: {calibration_us():.1f} us"
