"""Event text files, a line per event, as streams.

The text is read in blocks and parsed by a compiled loop over its bytes. Times are taken digit by digit into integer
nanoseconds: a Unix stamp keeps its nanoseconds, which a float64 of seconds would lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.ordering import Piece

_BLOCK_BYTES = 4 << 20
_SHORTEST_LINE = len("0 0 0 0\n")
_WORD_BYTES = 8

_COMPLAINTS = {
    1: "the time is not a decimal number",
    2: "x or y is missing or not a whole number of pixels",
    3: "the polarity is missing or none of 0, 1 and -1",
    4: "the line has more or fewer columns",
}
DECIMALS = {"s": 9, "ms": 6, "us": 3, "ns": 0}  # digits of a time of this unit behind the point, to the nanosecond


@dataclass(frozen=True)
class TextLayout:
    """What the columns of a line are, a letter of `txyp` each or another that is passed over, and the unit of times."""

    columns: str = "txyp"
    time_unit: str = "s"


ECD_LAYOUT = TextLayout()


def read_event_text(
    file: BinaryIO, source: str, layout: TextLayout = ECD_LAYOUT, lines_before: int = 0
) -> Iterator[Piece]:
    """Yield the events of an open text file; a line that cannot be read is a `RecordingError` with its number."""
    from cmaxslam_fbp.io.text import event_text_kernels as kernels

    roles = np.array(["txyp".find(letter) for letter in layout.columns]) % (kernels.OTHER + 1)
    decimals = DECIMALS[layout.time_unit]
    rest = b""
    while True:
        block = file.read(_BLOCK_BYTES)
        text = rest + block
        if not block:
            if not text.strip():
                return
            text += b"\n"
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        if len(rest) > 1000:
            raise RecordingError(f"{source} is not event text: line {lines_before + 1} is longer than 1000 characters")
        events = Events.room_for(end // _SHORTEST_LINE + 1)
        columns = (events.t_ns, events.x, events.y, events.p)
        padded = text + bytes(_WORD_BYTES)
        characters = np.frombuffer(padded, np.uint8)
        words = np.ndarray(len(text) + 1, np.uint64, padded, strides=(1,))  # they overlap
        count, lines, status = kernels.parse_events(characters, words, end, roles, decimals, *columns)
        if count:
            yield Piece(events[:count], f"the lines {lines_before + 1} to {lines_before + lines} of {source}")
        if status != kernels.OK:
            line = text[:end].split(b"\n", lines)[lines - 1].decode(errors="replace").strip()
            expected = " ".join(layout.columns)
            raise RecordingError(
                f"{source}, line {lines_before + lines}: {_COMPLAINTS[status]}: {line[:80]!r}; expected {expected!r}"
            )
        lines_before += lines
        if not block:
            return


def format_event_text(events: Events) -> bytes:
    """Return the lines `t x y p` of events, times in seconds with nine decimals (exact)."""
    from cmaxslam_fbp.io.text import event_text_kernels as kernels

    text = np.empty(40 * len(events), np.uint8)
    length = kernels.format_events(events.t_ns, events.x, events.y, events.p, text)
    return text[:length].tobytes()
