"""AEDAT 4 files as streams and packets, with the compressions that iniVation's DV uses."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.io.aedat.flat_buffers import Table
from cmaxslam_fbp.io.bad_input import unpack

MAGIC = b"#!AER-DAT4.0\r\n"
EVENTS, IMU = "EVTS", "IMUS"
NO_COMPRESSION, LZ4 = 0, 1
_COMPRESSIONS = ("none", "lz4", "lz4", "zstd", "zstd")
_LARGEST_HEADER = 16 << 20


@dataclass(frozen=True)
class Stream:
    """A stream of packets of one type, as the header describes it."""

    number: int
    type: str
    source: str
    size: SensorSize | None


class Aedat4File:
    """The header of a file, and its packets."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            front = file.read(len(MAGIC) + 4)
            if len(front) < len(MAGIC) + 4 or not front.startswith(MAGIC):
                raise RecordingError(f"{path} does not start as an AEDAT 4 file does: its header is cut")
            (length,) = struct.unpack("<I", front[-4:])
            if length > _LARGEST_HEADER:
                raise RecordingError(f"{path} claims a header of {length:,} bytes: it is damaged")
            header = front[-4:] + file.read(length)
        if len(header) < 4 + length:
            raise RecordingError(f"{path} ends in its header of {length:,} bytes: the file is cut")
        table = Table.root(header, b"IOHE")
        compression = table.number(0, "<i")
        if not 0 <= compression < len(_COMPRESSIONS):
            raise RecordingError(f"{path} has a compression {compression}; none, lz4 and zstd are known")
        self._compression = _COMPRESSIONS[compression]
        self._data_start = len(MAGIC) + len(header)
        self._table_at = table.number(1, "<q", -1)
        self.streams = list(_streams(table.text(2)))

    def packets(self, number: int) -> Iterator[tuple[bytes, str]]:
        """Yield the unpacked packets of a stream, each with words that name its place; others are passed over."""
        size = self._path.stat().st_size
        end = self._table_at if self._table_at > 0 else size
        at = self._data_start
        with self._path.open("rb") as file:
            while at < end:
                file.seek(at)
                head = file.read(8)
                stream, length = struct.unpack("<II", head.ljust(8, b"\0"))
                if len(head) < 8 or at + 8 + length > min(size, end):
                    raise RecordingError(f"{self._path} ends within a packet, at byte {at}: the file is cut or damaged")
                place = f"the packet at byte {at} of {self._path}"
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
