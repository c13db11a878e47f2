"""A recording of iniVation's DV: an AEDAT 4 file with events and IMU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.aedat.aedat4_file import EVENTS, IMU, MAGIC, Aedat4File, Stream
from cmaxslam_fbp.io.aedat.aedat4_sink import write_aedat4
from cmaxslam_fbp.io.aedat.flat_buffers import Table
from cmaxslam_fbp.io.bad_input import one_line_errors
from cmaxslam_fbp.io.decoding import Block, decode_blocks
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.writing import Sink
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

G_M_S2 = 9.81  # as iniVation's description of the format has it


class Aedat4Recording(Recording):
    """One stream of events, and one of IMU samples of the same camera; frames and triggers are passed over."""

    description = "an AEDAT 4 file (.aedat4)"
    endings = (".aedat4",)
    first_bytes = MAGIC
    sinks: ClassVar[Mapping[str, Sink]] = {".aedat4": write_aedat4}

    def _examine(self) -> None:
        self._file = Aedat4File(self.path)
        events = [stream for stream in self._file.streams if stream.type == EVENTS]
        self._events = self._choose(events, "event", self.options.events_topic, "--events-topic")

    def _choose(self, streams: list[Stream], what: str, wanted: str | None, flag: str) -> Stream:
        """Return the wanted stream, or the only one."""
        listed = ", ".join(f"{stream.number} ({stream.source[:30]})" for stream in streams) or "none"
        chosen = [stream for stream in streams if wanted in (None, str(stream.number))]
        if len(chosen) == 1:
            return chosen[0]
        if wanted is not None or not streams:
            stream = "stream" if wanted is None else f"stream {wanted}"
            raise RecordingError(f"{self.path} has no {what} {stream}; its {what} streams: {listed}")
        raise RecordingError(f"{self.path} has several {what} streams; choose one with {flag}: {listed}")

    def topics(self) -> list[tuple[str, str, int]]:
        """Return number and type of each stream; how many packets it has is not known without reading all of them."""
        return [
            (f"{stream.number} {stream.source}".strip(), f"AEDAT 4 {stream.type}", 1) for stream in self._file.streams
        ]

    def _own_sensor_size(self) -> SensorSize | None:
        return self._events.size

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io.decoding_kernels import decode_aedat4

        return decode_blocks(self._event_words(), decode_aedat4, np.zeros(1, np.int64))

    def _event_words(self) -> Iterator[Block]:
        for data, place in self._file.packets(self._events.number):
            with one_line_errors(place):
                words = Table.root(data, EVENTS.encode()).array(0, np.dtype(("<i8", 2)))
            yield words, place

    def _imu_stream(self) -> Stream | None:
        streams = [stream for stream in self._file.streams if stream.type == IMU]
        wanted = self.options.imu_topic
        if wanted is None:  # of several that of the same camera
            streams = [stream for stream in streams if stream.source == self._events.source] or streams
        if not streams and wanted is None:
            return None
        return self._choose(streams, "IMU", wanted, "--set recording.imu_topic=...")

    def _imu(self) -> ImuSamples | None:
        """Read the samples, whose axes are taken as they are: microseconds, then g, then deg/s."""
        stream = self._imu_stream()
        if stream is None:
            return None
        rows: list[tuple[float, ...]] = []
        for data, place in self._file.packets(stream.number):
            with one_line_errors(place):
                for sample in Table.root(data, IMU.encode()).tables(0):
                    rows.append((sample.number(0, "<q"), *(sample.number(field, "<f", 0.0) for field in range(2, 8))))
        if not rows:
            return None
        stamps_us, *_ = zip(*rows, strict=True)
        values = np.array([row[1:] for row in rows], float)
        return ImuSamples(1000 * np.array(stamps_us, np.int64), np.deg2rad(values[:, 3:]), G_M_S2 * values[:, :3])
