"""The text at the start of Prophesee's files and streams: lines of `% key value`."""

from __future__ import annotations

import re
from pathlib import Path

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize

LONGEST_HEADER = 1 << 16


def read_header(path: Path) -> tuple[dict[str, str], int]:
    """Return the values of a file's header by key, in small letters, and where the data begin."""
    with path.open("rb") as file:
        values, at, _ = parse_header(file.read(LONGEST_HEADER))
    if not values:
        raise RecordingError(f"{path} has no header with lines of '% key value'")
    return values, at


def parse_header(head: bytes) -> tuple[dict[str, str], int, bool]:
    """Return the values by key, where the data begin, and whether that is certain, or the next bytes may be header.

    They begin behind the line `% end`, or at the first line that does not start as the others do.
    """
    values: dict[str, str] = {}
    at = 0
    for line in re.finditer(rb"% ?([ -~]*)\r?\n", head):
        if line.start() != at:
            break
        at = line.end()
        key, _, value = line.group(1).decode("latin-1").strip().partition(" ")
        if key.lower() == "end":
            return values, at, True
        values[key.lower()] = value.strip()
    return values, at, not re.fullmatch(rb"(%[ -~]*\r?)?", head[at:])


def size_of(width: str | None, height: str | None) -> SensorSize | None:
    """Return the size that two words name, or None where they do not."""
    if not (width and height and re.fullmatch(r"\d{1,5}", width) and re.fullmatch(r"\d{1,5}", height)):
        return None
    return SensorSize(int(width), int(height))
