"""Events in a MATLAB file: the columns `x`, `y`, `ts` and `pol`, as variables or as the fields of one structure.

Files of MATLAB 5 to 7.2, which hold at most 2 GB a variable: columns are read whole. Those of MATLAB 7.3 are HDF5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.from_arrays import events_from_arrays, require_columns, unit_of_times
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.column_names import as_list, column_names, whole_numbers
from cmaxslam_fbp.io.matlab_file import SIGNATURE, read_variables
from cmaxslam_fbp.io.recording import Recording

_EVENTS_PER_CHUNK = 500_000
Columns = dict[str, npt.NDArray[Any]]


class MatlabRecording(Recording):
    """A `.mat` file."""

    description = "a MATLAB file (.mat)"
    first_bytes = SIGNATURE
    size_advice = "give it with --sensor-size WIDTHxHEIGHT, or as numbers 'width' and 'height' in it"

    def _examine(self) -> None:
        self._variables = read_variables(self.path)
        self._holder = self._find_columns()

    def _find_columns(self) -> str | None:
        """Return the structure whose fields are the columns, None where they are variables of their own."""
        if column_names(self._variables) is not None:
            return None
        candidates = [name for name, variable in self._variables.items() if column_names(variable.fields()) is not None]
        if not candidates:
            raise RecordingError(
                f"{self.path} has no events: none of its variables ({', '.join(self._variables)[:120] or 'none'}) are "
                "the columns x, y, ts and pol, nor a structure of them (or it is cut)"
            )
        if len(candidates) > 1:
            raise RecordingError(
                f"{self.path} has several structures of events: {', '.join(candidates)[:120]}; save one of them alone"
            )
        return candidates[0]

    @cached_property
    def _columns(self) -> Columns:
        """The columns, each (N,)."""
        found = self._variables if self._holder is None else self._variables[self._holder].fields()
        names = column_names(found) or {}
        columns = {column: as_list(found[name].values()) for column, name in names.items()}
        columns["t"] = whole_numbers(columns["t"])
        return columns

    def topics(self) -> list[tuple[str, str, int]]:
        """Return name, class and number of elements of each variable."""
        return [(name, variable.kind, variable.size) for name, variable in self._variables.items()]

    def _own_sensor_size(self) -> SensorSize | None:
        if not self._variables.keys() >= {"width", "height"}:
            return None
        return SensorSize(*(int(self._variables[name].values().reshape(-1)[0]) for name in ("width", "height")))

    def _named_unit(self) -> str | None:
        return self._variables["time_unit"].text() if "time_unit" in self._variables else None

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        columns, source = self._columns, str(self.path)
        count = require_columns({name: (column.shape, column.dtype) for name, column in columns.items()}, source)
        unit, note = self._named_unit(), ""
        if unit is None:
            unit, note = unit_of_times(columns["t"], source)
        for first in range(0, count, _EVENTS_PER_CHUNK):
            t, x, y, p = (column[first : first + _EVENTS_PER_CHUNK] for column in columns.values())
            events = events_from_arrays(t, x, y, p, time_unit=unit, source=source, first=first)
            yield Piece(events, f"the events {first} to {first + len(t) - 1} of {source}", note)
