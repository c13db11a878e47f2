"""Write an AEDAT 4 file: a stream of events and, where there is an IMU, one of its samples, compressed with LZ4."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.aedat.flat_buffers import buffer_of_structs, buffer_of_tables
from cmaxslam_fbp.io.writing import EventSource, WriteEvents

MAGIC = b"#!AER-DAT4.0\r\n"
EVENTS, IMU = "EVTS", "IMUS"
G_M_S2 = 9.81  # as iniVation's description of the format has it
_LZ4 = 1  # of the compressions
_EVENT = np.dtype([("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "u1"), ("_", "V3")])
_EVENTS_PER_PACKET = 1 << 14
_SAMPLES_PER_PACKET = 1 << 10
_IMU_FIELDS = ("temperature", "ax", "ay", "az", "gx", "gy", "gz", "mx", "my", "mz")
_TABLE_PLACE_AT = 32  # in the header, of the place of the table of packets

_DESCRIPTION = """<dv version="2.0">
 <node name="outInfo" path="/mainloop/Recorder/outInfo/">
{streams}
 </node>
</dv>"""
_STREAM = """  <node name="{number}" path="/mainloop/Recorder/outInfo/{number}/">
   <attr key="compression" type="string">LZ4</attr>
   <attr key="originalModuleName" type="string">cmaxslam_fbp</attr>
   <attr key="originalOutputName" type="string">{name}</attr>
   <attr key="typeDescription" type="string">{name}</attr>
   <attr key="typeIdentifier" type="string">{type}</attr>
   <node name="info" path="/mainloop/Recorder/outInfo/{number}/info/">
{size}    <attr key="source" type="string">cmaxslam_fbp</attr>
   </node>
  </node>"""
_SIZE = """    <attr key="sizeX" type="int">{0.width}</attr>
    <attr key="sizeY" type="int">{0.height}</attr>
"""


@contextmanager
def write_aedat4(source: EventSource, path: Path, compression: str) -> Iterator[WriteEvents]:
    """Make a file; its stamps are microseconds, and it has no place for a calibration or poses."""
    with path.open("wb") as file:
        packets = _Packets(source, file)
        yield packets.write
        packets.finish()


class _Packets:
    """Puts packets into a file, and the table of them at its end."""

    def __init__(self, source: EventSource, file: BinaryIO) -> None:
        self._file = file
        self._imu = source.imu
        self._imu_done = 0
        self._table: list[tuple[int, ...]] = []
        streams = [_STREAM.format(number=0, name="events", type=EVENTS, size=_SIZE.format(source.sensor_size))]
        if self._imu is not None:
            streams.append(_STREAM.format(number=1, name="imu", type=IMU, size=""))
        file.write(MAGIC + _header(_DESCRIPTION.format(streams="\n".join(streams))))

    def write(self, events: Events) -> None:
        """Append events, and the IMU samples until their end."""
        for first in range(0, len(events), _EVENTS_PER_PACKET):
            part = events[first : first + _EVENTS_PER_PACKET]
            records = np.zeros(len(part), _EVENT)
            records["t"], records["x"], records["y"], records["p"] = part.t_ns // 1000, part.x, part.y, part.p
            self._write_packet(0, buffer_of_structs(EVENTS.encode(), records), records["t"])
            self._write_imu_until(int(part.t_ns[-1]))

    def _write_imu_until(self, end_ns: int) -> None:
        imu = self._imu
        if imu is None:
            return
        last = int(np.searchsorted(imu.t_ns, end_ns, side="right"))
        for first in range(self._imu_done, last, _SAMPLES_PER_PACKET):
            part = slice(first, min(first + _SAMPLES_PER_PACKET, last))
            t_us = imu.t_ns[part] // 1000
            columns = dict.fromkeys(_IMU_FIELDS, np.zeros(len(t_us)))
            columns |= dict(zip(("ax", "ay", "az"), imu.linear_acceleration_m_s2[part].T / G_M_S2, strict=True))
            columns |= dict(zip(("gx", "gy", "gz"), np.rad2deg(imu.angular_velocity_rad_s[part].T), strict=True))
            fields = {"t": "<i8", **dict.fromkeys(_IMU_FIELDS, "<f4")}
            self._write_packet(1, buffer_of_tables(IMU.encode(), fields, {"t": t_us, **columns}), t_us)
        self._imu_done = max(self._imu_done, last)

    def _write_packet(self, stream: int, data: bytes, t_us: np.ndarray) -> None:
        packed = _compress(data)
        self._table.append((self._file.tell() + 8, stream, len(packed), len(t_us), int(t_us[0]), int(t_us[-1])))
        self._file.write(struct.pack("<ii", stream, len(packed)) + packed)

    def finish(self) -> None:
        """Write the rest of the IMU samples and the table of packets, and its place into the header."""
        self._write_imu_until(np.iinfo(np.int64).max)
        at = self._file.tell()
        columns = np.array(self._table, np.int64).reshape(-1, 6).T
        # A packet's header, stream and size, is one field of eight bytes.
        fields = {"byte": "<i8", "packet": "<i8", "count": "<i8", "start_us": "<i8", "end_us": "<i8"}
        packet = columns[1] | columns[2] << 32
        rows = dict(zip(fields, (columns[0], packet, *columns[3:]), strict=True))
        self._file.write(_compress(buffer_of_tables(b"FTAB", fields, rows)))
        self._file.seek(len(MAGIC) + _TABLE_PLACE_AT)
        self._file.write(struct.pack("<q", at))


def _header(description: str) -> bytes:
    """Return the FlatBuffer `IOHeader`: compression, the place of the table of packets (-1 for none), description."""
    text = description.encode()
    vtable = struct.pack("<5H6x", 10, 20, 12, 4, 16)
    table = struct.pack("<iqiI", 16, -1, _LZ4, 4)
    tail = struct.pack("<I", len(text)) + text + b"\0"
    tail += b"\0" * (-len(tail) % 4)
    front = struct.pack("<I4s", 24, b"IOHE") + vtable + table + tail
    return struct.pack("<I", len(front)) + front


def _compress(data: bytes) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]

    return bytes(lz4.frame.compress(data))
