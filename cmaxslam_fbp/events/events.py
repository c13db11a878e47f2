"""The one type for a piece of an event stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """N events as a struct of arrays, ordered by time.

    Attributes
    ----------
    t_ns : (N,) int64
        Event stamps in nanoseconds of the recording's own clock.
    x, y : (N,) uint16
        Pixel column (to the right) and row (down).
    p : (N,) uint8
        1 where the pixel became brighter, 0 where it became darker.
    """

    t_ns: IntArray
    x: npt.NDArray[np.uint16]
    y: npt.NDArray[np.uint16]
    p: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        for name, dtype in (("t_ns", np.int64), ("x", np.uint16), ("y", np.uint16), ("p", np.uint8)):
            column = getattr(self, name)
            if column.dtype != dtype or column.shape != (len(self.t_ns),):
                raise TypeError(
                    f"Events.{name} is {column.dtype} {column.shape}; expected {np.dtype(dtype)} ({len(self.t_ns)},)"
                )

    def __len__(self) -> int:
        return len(self.t_ns)

    def __getitem__(self, index: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Events:
        """Select by a slice (a view), a mask or an index array (copies)."""
        return Events(self.t_ns[index], self.x[index], self.y[index], self.p[index])

    @staticmethod
    def empty() -> Events:
        """No events."""
        return Events.room_for(0)

    @staticmethod
    def room_for(count: int) -> Events:
        """Return so many events that are still to be written."""
        t_ns, x, y = np.empty(count, np.int64), np.empty(count, np.uint16), np.empty(count, np.uint16)
        return Events(t_ns, x, y, np.empty(count, np.uint8))

    @staticmethod
    def from_arrays(
        t: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike, p: npt.ArrayLike, *, time_unit: str | None = None
    ) -> Events:
        """Return the events of columns (N,) of any number type, in the order given; a wrong value is an error.

        Parameters
        ----------
        t : times, in `time_unit`; without it floating-point numbers are seconds, and integers nanoseconds, or, with a
            warning, microseconds where only these give a plausible rate of events
        x, y : pixel column and row
        p : polarity: 1 or True for brighter; 0, False or -1 for darker
        time_unit : unit of the times: s, ms, us or ns
        """
        from cmaxslam_fbp.events.from_arrays import events_from_arrays

        columns = (np.asarray(column) for column in (t, x, y, p))
        return events_from_arrays(*columns, time_unit=time_unit, source="the arrays")

    @staticmethod
    def concatenate(pieces: Iterable[Events]) -> Events:
        """Join pieces in the order given."""
        pieces = list(pieces)
        if not pieces:
            return Events.empty()
        if len(pieces) == 1:
            return pieces[0]
        return Events(
            np.concatenate([piece.t_ns for piece in pieces]),
            np.concatenate([piece.x for piece in pieces]),
            np.concatenate([piece.y for piece in pieces]),
            np.concatenate([piece.p for piece in pieces]),
        )

    def between(self, start_ns: int, end_ns: int) -> Events:
        """Return the events of the half-open time range `start_ns <= t < end_ns`, as views."""
        first, last = np.searchsorted(self.t_ns, [start_ns, end_ns], side="left")
        return self[first:last]
