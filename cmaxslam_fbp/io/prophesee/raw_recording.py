"""A recording of a Prophesee camera as it came from the sensor: a RAW file, encoded as EVT 2.0, 2.1 or 3.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from cmaxslam_fbp.config import RecordingConfig
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.prophesee.header import read_header
from cmaxslam_fbp.io.prophesee.raw_format import RawFormat
from cmaxslam_fbp.io.recording import Recording, starts_with
from cmaxslam_fbp.io.word_blocks import read_words


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
        header, self._data_start = read_header(path)
        self._format = RawFormat(header, path)

    def _own_sensor_size(self) -> SensorSize | None:
        return self._format.sensor_size()

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the encoding and the number of its words."""
        words = (self.path.stat().st_size - self._data_start) // self._format.dtype.itemsize
        return [(self._format.plugin, f"{self._format.encoding} words", words)]

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        decoder, place = self._format.decoder(), str(self.path)
        for words, place in read_words(self.path, self._data_start, self._format.dtype):
            for events in decoder.decode(words):
                yield Piece(events, place)
        yield Piece(decoder.rest(), place, decoder.note)
