"""The memory of this process."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path


def peak_memory_mb() -> float:
    """Return the largest memory that this process has had.

    Linux tells it of the program itself; what `getrusage` tells includes the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


def give_back_memory() -> None:
    """Let the system have what was freed: glibc keeps it, a hundred megabytes after a pass over large chunks."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
