"""The frontend's velocities of a whole run, in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate

STATUSES = tuple(EstimateStatus)
MEASURED = np.array([status.is_measured for status in STATUSES])

_ROW = np.dtype([("t_ns", np.int64), ("omega_rad_s", np.float64, 3), ("status", np.uint8), ("events", np.int32)])

Velocities = npt.NDArray[Any]
"""Rows `t_ns`, `omega_rad_s` (3,), `status` (its place in `STATUSES`), `events`."""


class VelocityTable:
    """Rows that are appended one by one: 37 bytes each, where the estimates themselves would take a kilobyte."""

    def __init__(self) -> None:
        self._table: Velocities = np.empty(1024, _ROW)
        self._count = 0

    def append(self, estimate: VelocityEstimate) -> None:
        """Add the row of an estimate of an angular velocity."""
        if self._count == len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        status = STATUSES.index(estimate.status)
        self._table[self._count] = (estimate.t_ns, estimate.velocity, status, estimate.events)
        self._count += 1

    def rows(self) -> Velocities:
        """Return all rows so far: a view that later ones do not change."""
        return self._table[: self._count]
