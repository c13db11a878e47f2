"""A recording of iniVation's DV: an AEDAT 4 file with events and IMU, as streams of packets that may be compressed."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.aedat.aedat4_sink import EVENTS, G_M_S2, IMU, MAGIC, write_aedat4
from cmaxslam_fbp.io.aedat.flat_buffers import Table
from cmaxslam_fbp.io.bad_input import one_line_errors, unpack
from cmaxslam_fbp.io.decoding import Block, decode_blocks
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.io.writing import Sink
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_COMPRESSIONS = ("none", "lz4", "lz4", "zstd", "zstd")
_LARGEST_HEADER = 16 << 20


@dataclass(frozen=True)
class Stream:
    """A stream of packets of one type, as the header describes it."""

    number: int
    type: str
    source: str
    size: SensorSize | None


def _decompressor(compression: str) -> Any:
    if compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

        return LZ4FrameDecompressor()
    try:
        from compression import zstd  # type: ignore[import-not-found]  # from Python 3.14 on
    except ImportError:
        from backports import zstd

    return zstd.ZstdDecompressor()


def _streams(description: str) -> Iterator[Stream]:
    """Yield the streams that the XML in the header describes: nodes by number in the node `outInfo`."""
    for node in ElementTree.fromstring(description).iterfind("node[@name='outInfo']/node"):
        info = node.find("node[@name='info']")
        own, more = _attributes(node), {} if info is None else _attributes(info)
        name = node.get("name", "")
        if name.isdecimal() and len(name) < 6:
            size = SensorSize.from_text(f"{more.get('sizeX')}x{more.get('sizeY')}")
            yield Stream(int(name), own.get("typeIdentifier", ""), more.get("source", ""), size)


def _attributes(node: ElementTree.Element) -> dict[str, str]:
    return {item.get("key", ""): (item.text or "").strip() for item in node.iterfind("attr")}


class Aedat4Recording(Recording):
    """One stream of events, and one of IMU samples of the same camera; frames and triggers are passed over."""

    description = "an AEDAT 4 file (.aedat4)"
    endings = (".aedat4",)
    first_bytes = MAGIC
    sinks: ClassVar[Mapping[str, Sink]] = {".aedat4": write_aedat4}

    def _examine(self) -> None:
        with self.path.open("rb") as file:
            front = file.read(len(MAGIC) + 4)
            if len(front) < len(MAGIC) + 4 or not front.startswith(MAGIC):
                raise RecordingError(f"{self.path} does not start as an AEDAT 4 file does: its header is cut")
            (length,) = struct.unpack("<I", front[-4:])
            if length > _LARGEST_HEADER:
                raise RecordingError(f"{self.path} claims a header of {length:,} bytes: it is damaged")
            header = front[-4:] + file.read(length)
        if len(header) < 4 + length:
            raise RecordingError(f"{self.path} ends in its header of {length:,} bytes: the file is cut")
        table = Table.root(header, b"IOHE")
        compression = table.number(0, "<i")
        if not 0 <= compression < len(_COMPRESSIONS):
            raise RecordingError(f"{self.path} has a compression {compression}; none, lz4 and zstd are known")
        self._compression = _COMPRESSIONS[compression]
        self._data_start = len(MAGIC) + len(header)
        self._table_at = table.number(1, "<q", -1)
        self._streams = list(_streams(table.text(2)))
        events = [stream for stream in self._streams if stream.type == EVENTS]
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
        return [(f"{stream.number} {stream.source}".strip(), f"AEDAT 4 {stream.type}", 1) for stream in self._streams]

    def _packets(self, number: int) -> Iterator[tuple[bytes, str]]:
        """Yield the unpacked packets of a stream, each with words that name its place; others are passed over."""
        size = self.path.stat().st_size
        end = self._table_at if self._table_at > 0 else size
        at = self._data_start
        with self.path.open("rb") as file:
            while at < end:
                file.seek(at)
                head = file.read(8)
                stream, length = struct.unpack("<II", head.ljust(8, b"\0"))
                if len(head) < 8 or at + 8 + length > min(size, end):
                    raise RecordingError(f"{self.path} ends within a packet, at byte {at}: the file is cut or damaged")
                place = f"the packet at byte {at} of {self.path}"
                if stream == number:
                    yield self._unpack(file.read(length), place), place
                at += 8 + length

    def _unpack(self, data: bytes, place: str) -> bytes:
        if self._compression == "none":
            return data
        try:
            return unpack(_decompressor(self._compression), data)
        except Exception as error:  # lz4 and zstd have their own
            raise RecordingError(f"{place} cannot be unpacked: {str(error)[:80]}") from error

    def _own_sensor_size(self) -> SensorSize | None:
        return self._events.size

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io.decoding_kernels import decode_aedat4

        return decode_blocks(self._event_words(), decode_aedat4, np.zeros(1, np.int64))

    def _event_words(self) -> Iterator[Block]:
        for data, place in self._packets(self._events.number):
            with one_line_errors(place):
                words = Table.root(data, EVENTS.encode()).array(0, np.dtype(("<i8", 2)))
            yield words, place

    def _imu_stream(self) -> Stream | None:
        streams = [stream for stream in self._streams if stream.type == IMU]
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
        for data, place in self._packets(stream.number):
            with one_line_errors(place):
                for sample in Table.root(data, IMU.encode()).tables(0):
                    rows.append((sample.number(0, "<q"), *(sample.number(field, "<f", 0.0) for field in range(2, 8))))
        if not rows:
            return None
        stamps_us, *_ = zip(*rows, strict=True)
        values = np.array([row[1:] for row in rows], float)
        return ImuSamples(1000 * np.array(stamps_us, np.int64), np.deg2rad(values[:, 3:]), G_M_S2 * values[:, :3])
