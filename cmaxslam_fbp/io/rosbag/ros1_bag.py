"""ROS 1 bags (version 2.0): their topics from the end of the file, and the messages of a topic in the order of time.

A bag is a sequence of records, each a header of fields `name=value` and data. Messages lie in chunks, which may be
compressed; behind a chunk stands for each connection (a topic, as one node sent it) where its messages are in it. At
the end of the bag are all connections, and for each chunk how many messages it has of which. What is kept of an index
is that of the topics that are read, in 20 bytes a message, so that hours of an IMU do no harm.
"""

from __future__ import annotations

import struct
from bz2 import BZ2Decompressor
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.io.bad_input import unpack
from cmaxslam_fbp.nanoseconds import NS_PER_S

_MAGIC = b"#ROSBAG V2.0\n"
_MESSAGE, _BAG, _INDEX, _CHUNK, _CHUNK_INFO, _CONNECTION = 2, 3, 4, 5, 6, 7  # the field `op` of a header
_INDEXED = np.dtype([("s", "<u4"), ("ns", "<u4"), ("offset", "<u4")])
_PLACE = np.dtype([("t_ns", "<i8"), ("chunk", "<i8"), ("offset", "<u4")])
_PLACES_AT_A_TIME = 4096

Fields = dict[bytes, bytes]


class Ros1Connection(NamedTuple):
    """A topic as one node sent it."""

    id: int
    topic: str
    msgtype: str
    msgcount: int


class Ros1Bag:
    """An open bag.

    Parameters
    ----------
    file : its bytes; closing the bag closes it
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        if (magic := file.read(len(_MAGIC))) != _MAGIC:
            raise ValueError(f"it starts with {magic!r}; only version 2.0 of ROS 1 bags is known")
        header = _header(self._file, _BAG)
        if header.get(b"encryptor"):
            raise ValueError("it is encrypted")
        if not (end := _number(header, b"index_pos")):
            raise ValueError("it is not indexed")
        file.seek(end)
        named = [self._connection() for _ in range(_number(header, b"conn_count"))]
        self._chunks = dict(self._chunk_info() for _ in range(_number(header, b"chunk_count")))
        counts: dict[int, int] = {}
        for chunk in self._chunks.values():
            for number, count in chunk.items():
                counts[number] = counts.get(number, 0) + count
        self.connections = [Ros1Connection(*one, counts.get(one[0], 0)) for one in named]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def messages(self, connections: list[Ros1Connection]) -> Iterator[tuple[int, bytes]]:
        """Yield the stamp in nanoseconds and the bytes of each message of some connections, in the order of stamps."""
        wanted = {connection.id for connection in connections}
        places = self._places(wanted)
        order = np.lexsort((places["offset"], places["chunk"], places["t_ns"]))
        read, records, start = -1, self._file, 0
        for first in range(0, len(order), _PLACES_AT_A_TIME):
            for t_ns, chunk, offset in places[order[first : first + _PLACES_AT_A_TIME]].tolist():
                if chunk != read:
                    read, (records, start) = chunk, self._records(chunk)
                records.seek(start + offset)
                yield t_ns, _message(records, wanted)

    def _places(self, wanted: set[int]) -> npt.NDArray[Any]:
        """Return where the messages of some connections lie."""
        found = [np.empty(0, _PLACE)]
        for chunk, counts in self._chunks.items():
            if wanted.isdisjoint(counts):
                continue
            self._file.seek(chunk)
            _header(self._file, _CHUNK)
            self._file.seek(_length(self._file), 1)
            for _ in counts:
                number, indexed = _number(_header(self._file, _INDEX), b"conn"), _data(self._file)
                if number in wanted:
                    rows = np.frombuffer(indexed, _INDEXED)
                    places = np.empty(len(rows), _PLACE)
                    places["t_ns"] = rows["s"] * np.int64(NS_PER_S) + rows["ns"]
                    places["chunk"], places["offset"] = chunk, rows["offset"]
                    found.append(places)
        return np.concatenate(found)

    def _records(self, place: int) -> tuple[IO[bytes], int]:
        """Return the file that has the records of a chunk, and where they begin in it: this one, or one in memory."""
        self._file.seek(place)
        compression, size = _header(self._file, _CHUNK).get(b"compression", b""), _length(self._file)
        if compression == b"none":
            return self._file, self._file.tell()
        data = _take(self._file, size)
        if compression == b"bz2":
            return BytesIO(unpack(BZ2Decompressor(), data)), 0
        if compression == b"lz4":
            from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

            return BytesIO(unpack(LZ4FrameDecompressor(), data)), 0
        raise ValueError(f"a chunk of it is compressed by {compression!r}, which is not known")

    def _connection(self) -> tuple[int, str, str]:
        """Return number, topic and type of the connection that comes next."""
        header, more = _header(self._file, _CONNECTION), _fields(_data(self._file))
        if not {b"topic", b"type"} <= header.keys() | more.keys():
            raise ValueError("a connection of it has no topic or type")
        topic, kind = header[b"topic"].decode(), more[b"type"].decode()
        package, _, name = kind.rpartition("/")
        words = "/".join(word for word in topic.split("/") if word)
        return _number(header, b"conn"), f"{'/' * topic.startswith('/')}{words}", f"{package}/msg/{name}"

    def _chunk_info(self) -> tuple[int, dict[int, int]]:
        """Return where the next chunk that is told of lies, and how many messages it has of which connection."""
        place, data = _number(_header(self._file, _CHUNK_INFO), b"chunk_pos"), _data(self._file)
        return place, dict(struct.iter_unpack("<II", data))


def _message(records: IO[bytes], wanted: set[int]) -> bytes:
    """Return the bytes of the message that comes next."""
    while True:
        fields, size = _fields(_data(records)), _length(records)
        if fields.get(b"op") != bytes([_CONNECTION]):
            break
        records.seek(size, 1)  # some stand before their first message
    if _number(_of_kind(fields, _MESSAGE), b"conn") not in wanted:
        raise ValueError("its index names a message of another topic")
    return _take(records, size)


def _header(records: IO[bytes], kind: int) -> Fields:
    """Return the header of the record that comes next, which must be of a kind."""
    return _of_kind(_fields(_data(records)), kind)


def _data(records: IO[bytes]) -> bytes:
    return _take(records, _length(records))


def _length(records: IO[bytes]) -> int:
    return int.from_bytes(_take(records, 4), "little")


def _take(records: IO[bytes], size: int) -> bytes:
    data = records.read(size)
    if len(data) != size:
        raise ValueError("it ends within a record")
    return data


def _fields(header: bytes) -> Fields:
    """Return the values of a header by their names."""
    found, place, end = {}, 0, len(header)
    while place < end:
        start = place + 4
        place = start + int.from_bytes(header[place:start], "little")
        if place > end:
            raise ValueError("a header of it ends within a field")
        name, _, value = header[start:place].partition(b"=")
        found[name] = value
    return found


def _of_kind(header: Fields, kind: int) -> Fields:
    if header.get(b"op") != bytes([kind]):
        raise ValueError("a record of it is of another kind than its place tells")
    return header


def _number(header: Fields, name: bytes) -> int:
    if name not in header:
        raise ValueError(f"a record of it has no field {name.decode()}")
    return int.from_bytes(header[name], "little")
