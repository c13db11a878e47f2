"""Where the events lie in an HDF5 file, found by what is in it, and how a slab of them is read.

| layout | events | times |
| --- | --- | --- |
| DSEC, VECtor, TUM-VIE | `/events/{x,y,t,p}`, `/t_offset` | microseconds |
| M3ED | `/prophesee/left/{x,y,t,p}` | microseconds |
| Prophesee | `/CD/events`, records of x, y, p and t | microseconds |
| MVSEC | `/davis/left/events` (N, 4) of x, y, t and p | seconds |
| MATLAB 7.3 and others | `/{x,y,ts,pol}` | as in an archive |

A column may be called by any of the names that MATLAB files have. Where a column `ns` lies beside whole microseconds,
it is the part that they leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.from_arrays import UNIT_NS, events_from_arrays, require_columns, unit_of_times
from cmaxslam_fbp.io.column_names import column_names, whole_numbers
from cmaxslam_fbp.io.hdf5.file import Hdf5Dataset, Hdf5Group, is_group, members, require_plausible
from cmaxslam_fbp.io.hdf5.reference import read_array
from cmaxslam_fbp.io.hdf5.texts import read_text

_DEEPEST = 4
_MOST_OBJECTS = 1000  # a file of a data set has a few dozen
_EVENTS_PER_SLAB = 1 << 19
_MOST_PER_SLAB = 1 << 23
_INDICES = ("ms_to_idx", "ms_map_idx")  # from milliseconds to events: where they are, times are microseconds


@dataclass(frozen=True)
class EventsPlace:
    """Where events lie in a file: a group of columns, or one data set of records or rows.

    `columns` are the names in the group of t, x, y and p; nothing where it is one data set.
    """

    name: str
    columns: dict[str, str]
    count: int


def find_events(file: Hdf5Group) -> list[EventsPlace]:
    """Return all places of a file that hold events."""
    found: list[EventsPlace] = []
    waiting: list[tuple[Hdf5Group, int]] = [(file, 0)]
    seen = 0
    while waiting:
        group, depth = waiting.pop(0)
        things = dict(_first(members(group), _MOST_OBJECTS - seen))
        seen += len(things)
        datasets = {name: thing for name, thing in things.items() if hasattr(thing, "dtype")}
        names = column_names(datasets)
        if names is not None and all(_is_column(datasets[name]) for name in names.values()):
            found.append(EventsPlace(group.name, names, int(datasets[names["t"]].size)))
        found += [EventsPlace(thing.name, {}, len(thing)) for thing in datasets.values() if _is_table(thing)]
        if depth < _DEEPEST:
            waiting += [(thing, depth + 1) for thing in things.values() if is_group(thing)]
    return found


def _first(things: Iterator[tuple[str, Any]], count: int) -> Iterator[tuple[str, Any]]:
    for _, thing in zip(range(count), things, strict=False):
        yield thing


def _is_column(dataset: Hdf5Dataset) -> bool:
    shape: tuple[int, ...] = dataset.shape or ()
    return dataset.dtype.kind in "biuf" and (len(shape) == 1 or (len(shape) == 2 and 1 in shape))


def _is_table(dataset: Hdf5Dataset) -> bool:
    """Tell records of x, y, t and p, or rows of four numbers in a data set that is called so."""
    shape: tuple[int, ...] = dataset.shape or ()
    if dataset.dtype.names is not None:
        return len(shape) == 1 and column_names(dataset.dtype.names) is not None
    is_named = dataset.name.rsplit("/", 1)[-1] == "events"
    return is_named and dataset.dtype.kind in "iuf" and len(shape) == 2 and shape[1] == 4


class EventsReader:
    """Reads the events of one place, slab by slab; the file must stay open."""

    def __init__(self, file: Hdf5Group, place: EventsPlace, path: Path) -> None:
        self._source = f"{path}{place.name if len(place.name) > 1 else ''}"
        self._path, thing = path, file[place.name]
        self._columns: dict[str, Hdf5Dataset] = {c: thing[name] for c, name in place.columns.items()}
        self._table: Hdf5Dataset | None = None if self._columns else thing
        self._rest_ns: Hdf5Dataset | None = None
        datasets = list(self._columns.values()) or [thing]
        if self._columns:
            if "ns" in thing and _is_column(thing["ns"]):
                self._rest_ns = thing["ns"]
                datasets.append(self._rest_ns)
            require_columns({c: ((d.size,), d.dtype) for c, d in self._columns.items()}, self._source)
        require_plausible(path, *datasets)
        self.count = place.count
        self.slab = _slab_length([max(dataset.chunks or (0,)) for dataset in datasets])
        self._unit, self.note = self._time_unit(file, thing)
        self._offset_ns = self._time_offset(file, thing) * UNIT_NS["us"]

    def _time_unit(self, file: Hdf5Group, thing: Any) -> tuple[str | None, str]:
        """Return the unit of the times: microseconds in the data sets that are known."""
        if self._table is not None:
            return ("s", "") if self._table.dtype.names is None else ("us", "")
        times = self._columns["t"]
        if times.dtype.kind != "f" and any(name in place for name in _INDICES for place in (thing, thing.parent, file)):
            return "us", ""
        if "time_unit" in thing and thing["time_unit"].dtype.kind in "OS":
            return read_text(thing["time_unit"], self._path), ""
        return unit_of_times(whole_numbers(self._read(times, 0, min(self.count, 1 << 22))), self._source)

    def _time_offset(self, file: Hdf5Group, thing: Any) -> int:
        """Return the microseconds that are to be added to the times."""
        for place in (thing, thing.parent, file) if self._columns else ():
            if "t_offset" in place:
                (offset,) = read_array(place, "t_offset", self._path).reshape(-1)
                return int(offset)
        return 0

    def read(self, first: int) -> Events:
        """Return the slab of events that begins with one."""
        last = min(first + self.slab, self.count)
        t, x, y, p = self._raw(first, last)
        events = events_from_arrays(
            whole_numbers(t) if t.dtype.kind == "f" and self._unit != "s" else t,
            *(x, y, p),
            time_unit=self._unit,
            source=self._source,
            first=first,
        )
        t_ns = events.t_ns
        if self._rest_ns is not None:
            t_ns = t_ns + self._read(self._rest_ns, first, last).astype(np.int64)
        if self._offset_ns:
            t_ns = t_ns + self._offset_ns
        return events if t_ns is events.t_ns else Events(t_ns, events.x, events.y, events.p)

    def time_ns(self, number: int) -> int:
        """Return the time of one event, near enough to find a slab by."""
        t = self._raw_times(number, number + 1)
        return int(float(t[0]) * UNIT_NS[self._unit or "ns"]) + self._offset_ns

    def _raw_times(self, first: int, last: int) -> npt.NDArray[Any]:
        if self._table is None:
            return self._read(self._columns["t"], first, last)
        return self._raw(first, last)[0]

    def _raw(self, first: int, last: int) -> list[npt.NDArray[Any]]:
        """Return the columns t, x, y and p of some events, as they are stored."""
        if self._table is None:
            return [self._read(dataset, first, last) for dataset in self._columns.values()]
        rows = self._table[first:last]
        if rows.dtype.names is None:
            return [rows[:, 2], rows[:, 0], rows[:, 1], rows[:, 3]]
        names = column_names(rows.dtype.names) or {}
        return [rows[name] for name in names.values()]

    @staticmethod
    def _read(dataset: Hdf5Dataset, first: int, last: int) -> npt.NDArray[Any]:
        if len(dataset.shape) == 1:
            return np.asarray(dataset[first:last])
        window = (slice(first, last), 0) if dataset.shape[1] == 1 else (0, slice(first, last))
        return np.asarray(dataset[window])


def _slab_length(chunks: list[int]) -> int:
    """Return how many events to read at once: whole chunks of the longest, since a chunk is unpacked as one."""
    longest = max(*chunks, 1)
    if longest > _MOST_PER_SLAB:
        return _MOST_PER_SLAB
    return longest * -(-_EVENTS_PER_SLAB // longest)


def choose_place(places: list[EventsPlace], wanted: str | None, path: Path) -> EventsPlace:
    """Return the place that is wanted, by its name or the end of it, or the only one."""
    names = ", ".join(place.name for place in places)
    if not places:
        raise RecordingError(f"{path} has no events: no group of x, y, t and p, no data set of such records or rows")
    if wanted is None and len(places) == 1:
        return places[0]
    if wanted is None:
        raise RecordingError(f"{path} has several data sets of events; choose one with --events-dataset: {names}")
    parts = wanted.strip("/").split("/")
    fitting = [place for place in places if place.name == wanted] or [
        place
        for place in places
        if place.name.removesuffix("/events").strip("/").split("/")[-len(parts) :] == parts
        or place.name.strip("/").split("/")[-len(parts) :] == parts
    ]
    if len(fitting) != 1:
        what = "no data set" if not fitting else "several data sets"
        raise RecordingError(f"{path} has {what} of events {wanted}; there are {names}")
    return fitting[0]
