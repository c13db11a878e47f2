"""A recording in one text file of numbers, a line per event, in the order and the unit of time of whoever wrote it.

A first line with names tells the columns, and the unit of time where one is in the name (`t_us`). Without it they are
found by what they hold. What was taken for what is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events.from_arrays import UNIT_NS
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.text.event_text import TextLayout, read_event_text

_SAMPLE_BYTES = 1 << 18
_FEWEST_TO_JUDGE = 1000  # of fewer whole numbers the rate tells nothing; cameras count microseconds
_PLAUSIBLE_EV_S = 1e3, 5e7  # of the first events
_UNITS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "sec": "s", "seconds": "s", "\u00b5s": "us"}
_UNITS |= {"microseconds": "us", "nanoseconds": "ns"}
_NAMES = {
    "t": rf"(?:t|ts|times?|timestamps?)(?:[ _(\[]*(?P<unit>{'|'.join(_UNITS)})[)\]]?)?",
    "x": r"x(?:_?(?:coord|addr|address))?|col|column",
    "y": r"y(?:_?(?:coord|addr|address))?|row",
    "p": r"p|pol|polarity|polarities|on|sign",
}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)$")
_POLARITY_WORDS = ("true", "false")
_NAMED = "name the columns in a first line, e.g. t_us,x,y,p"


class CsvRecording(Recording):
    """Lines of four numbers or more, with commas, semicolons, blanks or tabs between them."""

    description = "a text file of events (.csv, or .txt with t x y p)"
    endings = (".csv",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell it by its ending; a .txt also by a line of at least four numbers."""
        if super().recognises(path):
            return True
        if path.suffix != ".txt" or not path.is_file():
            return False
        lines = _sample(path)[0]
        return bool(lines) and all(len(line) >= 4 and all(map(_NUMBER.match, line)) for line in lines[-3:])

    def _examine(self) -> None:
        lines, self._header_lines = _sample(self.path)
        names = lines.pop(0) if self._header_lines else None
        if not lines:
            raise RecordingError(f"{self.path} has no line with an event")
        if any(len(line) != len(lines[0]) for line in lines):
            raise RecordingError(f"{self.path} is no table of events: its lines have different numbers of columns")
        columns, unit = _named_columns(names) if names else (_guessed_columns(lines, str(self.path)), None)
        missing = [letter for letter in "txyp" if columns.count(letter) != 1]
        if missing:
            raise RecordingError(f"{self.path} has no column, or several, for {' and '.join(missing)}; {_NAMED}")
        is_plain = names is not None and unit is not None
        unit = unit or _guessed_unit([line[columns.index("t")] for line in lines], str(self.path))
        self._layout = TextLayout(columns, unit)
        self._note = "" if is_plain else f"the columns were taken as {','.join(columns)}, times in {unit}"

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the columns."""
        return [(",".join(self._layout.columns), f"text, times in {self._layout.time_unit}", 1)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        with self.path.open("rb") as file:
            for _ in range(self._header_lines):
                file.readline()
            for piece in read_event_text(file, str(self.path), self._layout, self._header_lines):
                yield Piece(piece.events, piece.place, self._note)


def _sample(path: Path) -> tuple[list[list[str]], int]:
    """Return the fields of the first lines, and how many lines there are up to one with names of columns."""
    with path.open("rb") as file:
        text = file.read(_SAMPLE_BYTES).decode("utf-8-sig", "replace")
    if len(text) >= _SAMPLE_BYTES - 4:  # the last line may be cut
        text = text[: text.rfind("\n") + 1]
    lines: list[list[str]] = []
    header_lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        fields = _fields(line)
        if not lines and _is_header(fields):
            header_lines = number
            lines.append(fields)
        elif any(fields) and not line.lstrip().startswith("#"):
            lines.append(fields)
    return lines, header_lines


def _fields(line: str) -> list[str]:
    """Return what stands between the commas or semicolons of a line, or, where it has none, between its blanks."""
    text = line.strip().lstrip("#").strip().lower()
    return [field.strip(" \"'") for field in (re.split("[,;]", text) if re.search("[,;]", text) else text.split())]


def _is_header(fields: list[str]) -> bool:
    """Tell a line of names, of which one at least is that of a time."""
    return any(re.fullmatch(_NAMES["t"], field) for field in fields)


def _named_columns(names: list[str]) -> tuple[str, str | None]:
    """Return a letter for each column, `-` for one that is not needed, and the unit of time if a name has it."""
    columns, unit = "", None
    for name in names:
        matches = [letter for letter, pattern in _NAMES.items() if re.fullmatch(pattern, name)]
        columns += matches[0] if matches else "-"
        if matches == ["t"]:
            found = re.fullmatch(_NAMES["t"], name)
            unit = found["unit"] if found else None
    return columns, _UNITS.get(unit or "")


def _guessed_columns(lines: list[list[str]], source: str) -> str:
    """Return a letter for each of four columns by what they hold: t never falls, p is only -1, 0 or 1."""
    if len(lines[0]) != 4:
        raise RecordingError(f"{source} has {len(lines[0])} columns without names; {_NAMED}")
    values = np.array([[_value(field, source) for field in line] for line in lines]).T
    polarities = [k for k in range(4) if np.isin(values[k], (-1, 0, 1)).all()]
    rising = [k for k in range(4) if (np.diff(values[k]) >= 0).all()]
    # A few events may be at 0 and 1 only: then the usual places count.
    p = 3 if 3 in polarities or not polarities else polarities[-1]
    others = [k for k in rising if k != p]
    t = 0 if 0 in others or not others else others[-1]
    letters = iter("xy")
    return "".join("t" if k == t else "p" if k == p else next(letters) for k in range(4))


def _value(field: str, source: str) -> float:
    if field in _POLARITY_WORDS:
        return float(field == "true")
    if not _NUMBER.match(field):
        raise RecordingError(f"{source} is no table of events: {field[:40]!r} is not a number; {_NAMED}")
    return float(field)


def _guessed_unit(times: list[str], source: str) -> str:
    """Return the unit of times: seconds where they have a decimal point, else micro- or nanoseconds.

    Whole numbers are microseconds, which cameras count, if that gives a plausible rate of events. They are nanoseconds
    if only that does, or if both do and all are whole microseconds.
    """
    if any("." in time for time in times):
        return "s"
    if len(times) < _FEWEST_TO_JUDGE:
        return "us"
    stamps = np.array([_value(time, source) for time in times])
    span = max(stamps[-1] - stamps[0], 1.0)
    lowest, highest = _PLAUSIBLE_EV_S
    plausible = [unit for unit in ("us", "ns") if lowest <= len(times) * 1e9 / (span * UNIT_NS[unit]) <= highest]
    if not plausible:
        raise RecordingError(f"{source} does not tell the unit of its times; {_NAMED}")
    return plausible[-1] if (stamps % 1000 == 0).all() else plausible[0]
