"""A recording of a Prophesee camera as it came from the sensor: a RAW file, encoded as EVT 2.0, 2.1 or 3.0.

A header of lines `% key value`, then words. Streams that are read live, and packed events, begin alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.decoding import EventRoom, read_words
from cmaxslam_fbp.io.recording import Recording, starts_with
from cmaxslam_fbp.io.rosbag.ros_messages import ROS1_EVENT, from_ros1

LONGEST_HEADER = 1 << 16
PACKED = "packed"  # 13 bytes an event, as ROS 1 has them
_NAMES = {"2.0": "EVT2", "2": "EVT2", "2.1": "EVT21", "3.0": "EVT3", "3": "EVT3"}
_WORDS: dict[str, npt.DTypeLike] = {"EVT2": "<u4", "EVT21": ("<u4", 2), "EVT3": "<u2", PACKED: ROS1_EVENT}
_TIME_HIGH = 0x8
_EVT21_TYPES = (0x0, 0x1, _TIME_HIGH, 0xA, 0xE, 0xF)
_GENERATIONS = {"3.0": SensorSize(640, 480), "3.1": SensorSize(640, 480)}
_GENERATIONS |= dict.fromkeys(("4.0", "4.1", "4.2"), SensorSize(1280, 720))


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


class RawFormat:
    """Encoding, size and camera of the data behind a header.

    Parameters
    ----------
    header : its values by key
    source : for messages
    """

    def __init__(self, header: Mapping[str, str], source: object) -> None:
        self._header = header
        # A format is `EVT3;height=720;width=1280`; older files only have `evt 3.0`, some a line for the endianness.
        name, *fields = header.get("format", "").split(";")
        self.fields = {key: header[key] for key in ("endianness",) if key in header}
        self.fields |= dict(field.partition("=")[::2] for field in fields)
        self.encoding = name or _NAMES.get(header.get("evt", ""), header.get("evt", ""))
        if self.encoding not in _WORDS:
            known = ", ".join(_WORDS)
            raise RecordingError(f"{source} has the encoding {self.encoding[:40] or 'of no name'}; {known} are read")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a word as it lies in the file."""
        dtype = np.dtype(_WORDS[self.encoding])
        return dtype.newbyteorder(">") if self.fields.get("endianness") == "big" else dtype

    @property
    def plugin(self) -> str:
        """What has recorded it."""
        return self._header.get("plugin_name", "camera")

    def sensor_size(self) -> SensorSize | None:
        """Return the size that the header names, or that of the sensor's generation."""
        generation = self._header.get("sensor_generation", self._header.get("generation", ""))
        return (
            SensorSize.from_text(self._header.get("geometry", ""))
            or SensorSize.from_text(f"{self.fields.get('width')}x{self.fields.get('height')}")
            or _GENERATIONS.get(generation)
        )

    def camera(self) -> Camera | None:
        """Return the calibration of packed events, `intrinsics fx fy cx cy` and `distortion MODEL k1 ...`, if any."""
        header, size = self._header, self.sensor_size()
        if self.encoding != PACKED or "intrinsics" not in header or size is None:
            return None
        fx, fy, cx, cy = map(float, header["intrinsics"].split())
        model, *coefficients = header.get("distortion", "plumb_bob").split()
        return Camera(*size, fx, fy, cx, cy, tuple(map(float, coefficients)), model)


class RawDecoder:
    """Decodes the words of one pass over the data, block after block."""

    def __init__(self, form: RawFormat) -> None:
        from cmaxslam_fbp.io import decoding_kernels

        self._form, self._kernels = form, decoding_kernels
        self._room, self._state = EventRoom(), np.zeros(decoding_kernels.STATE_SIZE, np.int64)
        self._decode: Callable[..., Any] | None = None

    def decode(self, words: npt.NDArray[Any]) -> Iterator[Events]:
        """Decode a block; yield the events whenever a chunk of them is full."""
        if self._form.encoding == PACKED:
            yield from_ros1(words)
            return
        words = words.astype(words.dtype.newbyteorder("<"), copy=False)
        if self._decode is None:
            self._decode = getattr(self._kernels, f"decode_{self._form.encoding.lower()}")
            if self._form.encoding == "EVT21":
                self._state[self._kernels.HEAD] = 0 if self._has_swapped_halves(words) else 1
        yield from self._room.fill(self._decode, words, self._state)

    def _has_swapped_halves(self, words: npt.NDArray[Any]) -> bool:
        """Tell the order of the halves of EVT 2.1 words: where the header does not, the types of the first words do.

        The half that has them has known ones, some of them times. Pixels may look like types, but not like both: a
        single one is the type of an event.
        """
        if "endianness" in self._form.fields:
            return self._form.fields["endianness"] == "legacy"
        types = words >> 28
        times = (types == _TIME_HIGH).sum(axis=0)
        known = np.isin(types, _EVT21_TYPES).sum(axis=0) * (times > 0)
        return bool((known[0], times[0]) > (known[1], times[1]))

    def rest(self) -> Events:
        """Return the events since the last chunk."""
        return self._room.take()

    @property
    def note(self) -> str:
        """What to tell the user."""
        return "words of unknown types were passed over" if self._state[self._kernels.UNKNOWN_WORDS] else ""


class RawRecording(Recording):
    """Events of a Prophesee sensor, from whose start time counts; triggers and other messages are passed over."""

    description = "a Prophesee RAW file (EVT 2.0, 2.1 or 3.0)"
    endings = (".raw",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell it by its ending or its header, which names an encoding."""
        if super().recognises(path):
            return True
        return starts_with(path, b"%") and {"evt", "format"} & read_header(path)[0].keys() != set()

    def _examine(self) -> None:
        header, self._data_start = read_header(self.path)
        self._format = RawFormat(header, self.path)

    def _own_sensor_size(self) -> SensorSize | None:
        return self._format.sensor_size()

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the encoding and the number of its words."""
        words = (self.path.stat().st_size - self._data_start) // self._format.dtype.itemsize
        return [(self._format.plugin, f"{self._format.encoding} words", words)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        decoder, place = RawDecoder(self._format), str(self.path)
        for words, place in read_words(self.path, self._data_start, self._format.dtype):
            for events in decoder.decode(words):
                yield Piece(events, place)
        yield Piece(decoder.rest(), place, decoder.note)
