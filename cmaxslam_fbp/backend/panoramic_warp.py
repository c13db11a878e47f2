"""The events of a window on the panorama, as a function of the trajectory."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, IntArray, SingleArray
from cmaxslam_fbp.backend import panoramic_warp_kernels as kernels
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.trajectory.position_spline import PositionSpline, weights_at
from cmaxslam_fbp.trajectory.spline import RotationSpline

_MIN_EVENTS = 10.0  # of a control, where there are hardly any


class HasRotations(Protocol):
    """A trajectory."""

    def rotations_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return `R_wc` at times as matrices (..., 3, 3)."""
        ...


class SlottedEvents:
    """Events in slots of time, with the directions that their pixels see.

    Parameters
    ----------
    events : the events, ordered by time, all in `[start_ns, end_ns]`
    bearings : (height, width, 3) float32, the direction that every pixel of the sensor sees
    start_ns, end_ns : the time that the slots cover
    slot_ns : the length of a slot; the last one may be shorter

    Attributes
    ----------
    edges_ns : (S + 1,) int64
        The edges of the slots.
    """

    def __init__(self, events: Events, bearings: SingleArray, start_ns: int, end_ns: int, slot_ns: int) -> None:
        slots = max(1, -(-(end_ns - start_ns) // slot_ns))
        self.edges_ns: IntArray = np.minimum(start_ns + slot_ns * np.arange(slots + 1, dtype=np.int64), end_ns)
        self._first = np.searchsorted(events.t_ns, self.edges_ns, side="left").astype(np.int64)  # of each slot
        self._first[-1] = len(events)
        since = events.t_ns - start_ns
        slot = np.minimum(since // slot_ns, slots - 1)
        # From 0 to 1 in its slot.
        self._place: SingleArray = ((since - slot * slot_ns) / np.diff(self.edges_ns)[slot]).astype(np.float32)
        self._bearings: SingleArray = np.empty((3, len(events)), np.float32)
        kernels.look_up(events.x, events.y, bearings, self._bearings)

    def __len__(self) -> int:
        return len(self._place)

    def events_of_controls(self, spline: RotationSpline | PositionSpline) -> FloatArray:
        """Return how many events each control of a spline speaks for (K,), at least a few."""
        per_slot = np.diff(self._first).astype(np.float64)
        per_edge = np.append(per_slot, 0.0) / 2 + np.insert(per_slot, 0, 0.0) / 2
        first, weights = weights_at(spline, self.edges_ns)
        counts = np.full(len(spline), _MIN_EVENTS)
        for j in range(spline.order):
            counts += np.bincount(first + j, weights[:, j] * per_edge, minlength=len(spline))
        return counts


class PanoramicWarp(SlottedEvents):
    """Carries events to the panorama: `p_i = pi(R(t_i) b_i)`, with the bearing `b_i` of the event's pixel.

    The rotation is the spline's at the edges of the slots and linear between them. `projection` is the panorama.
    """

    def __init__(
        self,
        events: Events,
        bearings: SingleArray,
        projection: Equirectangular,
        start_ns: int,
        end_ns: int,
        slot_ns: int,
    ) -> None:
        super().__init__(events, bearings, start_ns, end_ns, slot_ns)
        self.projection = projection
        self._size = tuple(np.float32(n) for n in (projection.width, projection.height, projection.focal_px))

    def arrays(self) -> tuple[IntArray, SingleArray, SingleArray]:
        """Return the slot (N,) of every event, its place (N,) in it from 0 to 1, and its bearing (3, N)."""
        slots = np.repeat(np.arange(len(self._first) - 1), np.diff(self._first))
        return slots, self._place, self._bearings

    def rotations(self, spline: HasRotations) -> SingleArray:
        """Return the rotations (S + 1, 9) at the edges of the slots."""
        return spline.rotations_at(self.edges_ns).reshape(-1, 9).astype(np.float32)

    def points(
        self, rotations: SingleArray, region: Region | None = None, out: SingleArray | None = None
    ) -> SingleArray:
        """Return the row and column (N, 2) of every event in the frame of a region, or in the whole panorama."""
        out = np.empty((len(self), 2), np.float32) if out is None else out
        corner = (0, 0, 0) if region is None else (region.top, region.left, region.padding)
        frame = (*self._size, *(np.float32(n) for n in corner))
        kernels.warp(self._first, self._place, self._bearings, rotations, *frame, out.reshape(-1))
        return out

    def pullback(self, rotations: SingleArray, points_bar: SingleArray) -> FloatArray:
        """Return the gradient (S + 1, 3) for left turns `exp(phi_m) R_m` of the edges."""
        gradient, focal = np.empty((len(self.edges_ns), 3)), self._size[2]
        kernels.pullback(self._first, self._place, self._bearings, rotations, focal, points_bar.reshape(-1), gradient)
        return gradient

    def pullback_curvature(self, rotations: SingleArray, curvatures: SingleArray) -> FloatArray:
        """Return `sum_i A_i^T C_i A_i` (S + 1, 3, 3), `A_i = d(row, column)/d phi`, lumped at the edges.

        `curvatures` (N, 3) holds of each `C_i` row-row, row-column and column-column: see `Binning.curvatures`.
        """
        entries, focal = np.empty((len(self.edges_ns), 6)), self._size[2]
        flat = curvatures.reshape(-1)
        kernels.pullback_curvature(self._first, self._place, self._bearings, rotations, focal, flat, entries)
        return entries[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
