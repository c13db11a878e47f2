"""Events out of anyone's arrays: times in any unit, polarities of any coding, checked value by value."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.events import Events
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S

UNIT_NS = {"s": NS_PER_S, "ms": 1_000_000, "us": 1_000, "ns": 1}
_FASTEST_EVENTS_PER_NS = 1.0  # no sensor comes near a thousand million events a second
_PLAUSIBLE_EV_S = 1e3, 5e7  # of a whole recording, not of a burst
_FEWEST_TO_JUDGE = 1000


def require_columns(columns: Mapping[str, tuple[tuple[int, ...], np.dtype]], source: str) -> int:
    """Return the common length of columns, given by shape and type; an error where they are no lists of numbers."""
    for name, (shape, dtype) in columns.items():
        if len(shape) != 1 or dtype.kind not in "biuf":
            raise RecordingError(f"{source}/{name} is {dtype} of shape {shape}; it must be a list of numbers")
    lengths = {name: shape[0] for name, (shape, _) in columns.items()}
    if len(set(lengths.values())) != 1:
        raise RecordingError(f"{source}: the columns differ in length: {lengths}")
    return next(iter(lengths.values()))


def unit_of_times(t: npt.NDArray[Any], source: str) -> tuple[str, str]:
    """Return the unit of times that have none, and a line that says so where it was not plain.

    Floating-point numbers are seconds. Whole numbers are micro- or nanoseconds, whichever gives a plausible rate of
    events; where both do, multiples of a thousand are nanoseconds (cameras count microseconds), others an error. The
    rate of a few events says nothing: they are in nanoseconds.
    """
    if t.dtype.kind == "f":
        return "s", ""
    if len(t) < _FEWEST_TO_JUDGE or t.dtype.kind not in "iu":
        return "ns", ""
    first, last = t[len(t) // 100], t[-1 - len(t) // 100]  # a stray stamp at either end says nothing
    span = max(abs(int(last) - int(first)), 1)
    rates = {unit: 0.98 * len(t) / (span * UNIT_NS[unit] / 1e9) for unit in ("ns", "us")}
    lowest, highest = _PLAUSIBLE_EV_S
    plausible = [unit for unit, rate in rates.items() if lowest <= rate <= highest]
    if len(plausible) == 2 and not (t % 1000).any():
        plausible = ["ns"]
    if len(plausible) != 1:
        raise RecordingError(
            f"{source} has whole numbers as times, without a unit: {rates['ns']:.2g} events a second if they are "
            f"nanoseconds, {rates['us']:.2g} if microseconds; add the string 'time_unit' (s, ms, us or ns)"
        )
    (unit,) = plausible
    return unit, f"the times have no unit: they were taken as {unit}, {rates[unit]:.2g} events a second ('time_unit')"


def events_from_arrays(
    t: npt.NDArray[Any],
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    p: npt.NDArray[Any],
    *,
    time_unit: str | None,
    source: str,
    first: int = 0,
) -> Events:
    """Return the events of columns as `Events.from_arrays` describes them; what cannot be right is a `RecordingError`.

    `source` names the arrays in errors; `first` is the number of the first of these events among all of the source.
    """
    require_columns({name: (a.shape, a.dtype) for name, a in (("t", t), ("x", x), ("y", y), ("p", p))}, source)
    unit, note = (time_unit, "") if time_unit is not None else unit_of_times(t, source)
    if note and unit != "ns":
        warnings.warn(note, stacklevel=3)
    if unit not in UNIT_NS:
        raise RecordingError(f"{source} has the time_unit {unit!r}; it must be one of {', '.join(UNIT_NS)}")
    t_ns = _to_ns(t, UNIT_NS[unit], source, first)
    if first == 0:
        _require_plausible(t_ns, source)
    columns, rows = _to_pixels(x, "x", source, first), _to_pixels(y, "y", source, first)
    return Events(t_ns, columns, rows, _to_polarity(p, source, first))


def _to_ns(t: npt.NDArray[Any], unit_ns: int, source: str, first: int) -> IntArray:
    if not len(t):
        return t.astype(np.int64)
    is_float = t.dtype.kind == "f"
    if is_float and (bad := ~np.isfinite(t)).any():
        raise RecordingError(f"{source}: the time of event {first + int(np.argmax(bad))} is not a finite number")
    low, high = t.min().item(), t.max().item()
    largest = LARGEST_NS // unit_ns
    if low < -largest or high > largest:
        place = int(t.argmin() if low < -largest else t.argmax())
        raise RecordingError(
            f"{source}: the time of event {first + place}, {t[place]}, is more than 64 bits of nanoseconds hold; "
            "check its unit ('time_unit')"
        )
    if not is_float:
        return t.astype(np.int64) * unit_ns
    apart_ns = float(np.spacing(np.abs(t).max())) * unit_ns  # what the type of the times can tell apart
    if t.dtype.itemsize < 8 and apart_ns > 1000:
        raise RecordingError(f"{source} has times in {t.dtype}, which cannot hold microseconds: use float64")
    # Whole and fractional parts apart: the product of the whole time would be rounded to 256 ns at Unix times.
    # There the seconds themselves are rounded to 238 ns: the microseconds that were meant come back by rounding.
    t = t.astype(np.float64, copy=False)
    whole = np.floor(t)
    step_ns = 1000 if apart_ns > 100 else 1
    return whole.astype(np.int64) * unit_ns + np.rint((t - whole) * (unit_ns / step_ns)).astype(np.int64) * step_ns


def _to_pixels(values: npt.NDArray[Any], name: str, source: str, first: int) -> npt.NDArray[np.uint16]:
    with np.errstate(invalid="ignore"):  # numbers beyond the range are found below
        pixels = values.astype(np.uint16) if values.dtype != np.uint16 else values
    wrong = pixels != values
    if wrong.any():
        place = int(np.argmax(wrong))
        raise RecordingError(f"{source}: {name} of event {first + place} is {values[place]}, not a pixel")
    return pixels


def _to_polarity(values: npt.NDArray[Any], source: str, first: int) -> npt.NDArray[np.uint8]:
    wrong = (values != 0) & (values != 1) & ((values != -1) if values.dtype.kind in "if" else True)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise RecordingError(f"{source}: the polarity of event {first + place} is {values[place]}, none of 0, 1 and -1")
    return (values > 0).astype(np.uint8)


def _require_plausible(t_ns: IntArray, source: str) -> None:
    """Refuse times that make more events a second than any sensor gives: they count in another unit."""
    span_ns = int(t_ns.max() - t_ns.min()) if len(t_ns) else 0
    if len(t_ns) > 1000 and span_ns > 0 and len(t_ns) / span_ns > _FASTEST_EVENTS_PER_NS:
        raise RecordingError(
            f"{source} would have {len(t_ns) / span_ns * 1e9:.2g} events a second: its times are not in "
            "nanoseconds; add the string 'time_unit' (s, ms, us or ns)"
        )
