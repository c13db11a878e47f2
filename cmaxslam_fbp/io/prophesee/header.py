"""The text at the start of Prophesee's files: lines of `% key value`."""

from __future__ import annotations

import re
from pathlib import Path

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize

_LONGEST_HEADER = 1 << 16


def read_header(path: Path) -> tuple[dict[str, str], int]:
    """Return the values by key, in small letters, and where the data begin.

    They begin behind the line `% end`, or at the first line that does not start as the others do.
    """
    with path.open("rb") as file:
        head = file.read(_LONGEST_HEADER)
    values: dict[str, str] = {}
    at = 0
    for line in re.finditer(rb"% ?([ -~]*)\r?\n", head):
        if line.start() != at:
            break
        at = line.end()
        key, _, value = line.group(1).decode("latin-1").strip().partition(" ")
        if key.lower() == "end":
            break
        values[key.lower()] = value.strip()
    if not values:
        raise RecordingError(f"{path} has no header with lines of '% key value'")
    return values, at


def size_of(width: str | None, height: str | None) -> SensorSize | None:
    """Return the size that two words name, or None where they do not."""
    if not (width and height and re.fullmatch(r"\d{1,5}", width) and re.fullmatch(r"\d{1,5}", height)):
        return None
    return SensorSize(int(width), int(height))
