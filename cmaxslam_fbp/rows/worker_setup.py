"""Run by each worker on this machine when it starts: Dask calls `dask_setup`."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the program that started the worker and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
