"""A recording of a Prophesee camera as it came from the sensor: a RAW file, encoded as EVT 2.0, 2.1 or 3.0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.event_room import EventRoom
from cmaxslam_fbp.io.prophesee.header import read_header, size_of
from cmaxslam_fbp.io.recording import Recording, starts_with
from cmaxslam_fbp.io.word_blocks import read_words

_NAMES = {"2.0": "EVT2", "2": "EVT2", "2.1": "EVT21", "3.0": "EVT3", "3": "EVT3"}
_WORDS: dict[str, npt.DTypeLike] = {"EVT2": "<u4", "EVT21": ("<u4", 2), "EVT3": "<u2"}
_GENERATIONS = {"3.0": SensorSize(640, 480), "3.1": SensorSize(640, 480)}
_GENERATIONS |= dict.fromkeys(("4.0", "4.1", "4.2"), SensorSize(1280, 720))


class RawRecording(Recording):
    """Events of a Prophesee sensor, from whose start time counts; triggers and other messages are passed over."""

    description: ClassVar[str] = "a Prophesee RAW file (EVT 2.0, 2.1 or 3.0)"
    endings: ClassVar[tuple[str, ...]] = (".raw",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Tell it by its ending or its header, which names an encoding."""
        if super().recognises(path):
            return True
        return starts_with(path, b"%") and {"evt", "format"} & read_header(path)[0].keys() != set()

    def __init__(self, path: Path, options: RecordingConfig | None = None) -> None:
        super().__init__(path, options)
        self._header, self._data_start = read_header(path)
        # A format is `EVT3;height=720;width=1280`; older files only have `evt 3.0`.
        name, *fields = self._header.get("format", "").split(";")
        self._fields = dict(field.partition("=")[::2] for field in fields)
        self._encoding = name or _NAMES.get(self._header.get("evt", ""), self._header.get("evt", ""))
        if self._encoding not in _WORDS:
            known = ", ".join(_WORDS)
            raise RecordingError(f"{path} has the encoding {self._encoding[:40] or 'of no name'}; {known} are read")

    def _own_sensor_size(self) -> SensorSize | None:
        """Return the size that the header names, or that of the sensor's generation."""
        width, _, height = self._header.get("geometry", "").partition("x")
        generation = self._header.get("sensor_generation", self._header.get("generation", ""))
        return (
            size_of(width, height)
            or size_of(self._fields.get("width"), self._fields.get("height"))
            or _GENERATIONS.get(generation)
        )

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the encoding and the number of its words."""
        words = (self.path.stat().st_size - self._data_start) // np.dtype(_WORDS[self._encoding]).itemsize
        return [(self._header.get("plugin_name", "camera"), f"{self._encoding} words", words)]

    def _decoder(self) -> Callable[..., Any]:
        from cmaxslam_fbp.io.prophesee import evt_kernels as kernels

        if self._encoding == "EVT21" and self._has_swapped_halves():
            return kernels.decode_evt21_legacy
        return getattr(kernels, f"decode_{self._encoding.lower()}")

    def _has_swapped_halves(self) -> bool:
        """Tell the order of the halves of EVT 2.1 words: where the header does not, the types of the first words do."""
        if "endianness" in self._fields:
            return self._fields["endianness"] == "legacy"
        for words, _ in islice(self._blocks(), 1):
            known = np.isin(words >> 28, (0x0, 0x1, 0x8, 0xA, 0xE, 0xF)).sum(axis=0)
            return bool(known[0] > known[1])
        return False

    def _blocks(self) -> Iterator[tuple[npt.NDArray[Any], str]]:
        dtype = np.dtype(_WORDS[self._encoding])
        if self._fields.get("endianness") == "big":
            for words, place in read_words(self.path, self._data_start, dtype.newbyteorder(">")):
                yield words.astype(dtype), place
            return
        yield from read_words(self.path, self._data_start, dtype)

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io.prophesee import evt_kernels as kernels

        decode, room, state = self._decoder(), EventRoom(), np.zeros(kernels.STATE_SIZE, np.int64)
        place = str(self.path)
        for words, place in self._blocks():
            for events in room.fill(decode, words, state):
                yield Piece(events, place)
        note = "words of unknown types were passed over" if state[kernels.UNKNOWN_WORDS] else ""
        yield Piece(room.take(), place, note)
