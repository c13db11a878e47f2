"""A recording of iniVation's cAER or older DV: an AEDAT 3 file with packets of polarity events and IMU samples."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.decoding import Block, decode_blocks
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_END = b"#!END-HEADER\r\n"
_LONGEST_HEADER = 1 << 20
_POLARITY, _IMU6 = 1, 3
_SIZES = {"DVS128": SensorSize(128, 128), "DAVIS240": SensorSize(240, 180), "DAVIS346": SensorSize(346, 260)}
_IMU_RECORD = np.dtype([("valid", "<u4"), ("t_us", "<i4"), ("g", "<f4", 3), ("deg_s", "<f4", 3), ("celsius", "<f4")])
_G_M_S2 = 9.81
_VALID = 1


class _Packet(NamedTuple):
    overflows: int  # of the 31 bits of microseconds so far
    item_bytes: int
    data: bytes
    place: str


class Aedat3Recording(Recording):
    """Events and IMU of one camera; frames and special events are passed over, and so are items marked invalid."""

    description = "an AEDAT 3 file"
    first_bytes = b"#!AER-DAT3"

    def _examine(self) -> None:
        with self.path.open("rb") as file:
            head = file.read(_LONGEST_HEADER)
        end = head.find(_END)
        if end < 0:
            raise RecordingError(f"{self.path} is an AEDAT 3 file without the end of its header, {_END[:-2].decode()}")
        text = head[:end].decode("latin-1")
        self._data_start = end + len(_END)
        self._sources = {int(number): name for number, name in re.findall(r"^#Source (\d{1,5}): *(\w+)", text, re.M)}
        form = re.search(r"^#Format: *(\S+)", text, re.MULTILINE)
        if form and form.group(1) != "RAW":
            raise RecordingError(
                f"{self.path} is compressed ({form.group(1)[:40]}); write it as RAW, or as AEDAT 4 with DV"
            )
        if len(self._sources) > 1:
            listed = ", ".join(f"{number} ({name[:30]})" for number, name in self._sources.items())
            raise RecordingError(f"{self.path} has several cameras: {listed[:120]}; split it with DV")

    def _own_sensor_size(self) -> SensorSize | None:
        name = next(iter(self._sources.values()), "").upper()
        return next((size for start, size in _SIZES.items() if name.startswith(start)), None)

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the camera and the number of bytes behind the header."""
        name = next(iter(self._sources.values()), "camera")
        return [(name, "AEDAT 3 bytes", self.path.stat().st_size - self._data_start)]

    def _packets(self, wanted: int) -> Iterator[_Packet]:
        """Yield the packets of a type; each has a header of 28 bytes."""
        size, at = self.path.stat().st_size, self._data_start
        with self.path.open("rb") as file:
            while at < size:
                file.seek(at)
                head = file.read(28)
                kind, _, item_bytes, _, overflows, _, count, _ = struct.unpack("<HHIIIIII", head.ljust(28, b"\0"))
                end = at + 28 + item_bytes * count
                if len(head) < 28 or end > size:
                    raise RecordingError(f"{self.path} ends within a packet, at byte {at}: the file is cut or damaged")
                if kind == wanted:
                    yield _Packet(
                        overflows, item_bytes, file.read(end - at - 28), f"the packet at byte {at} of {self.path}"
                    )
                at = end

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        from cmaxslam_fbp.io import decoding_kernels as kernels

        state = np.zeros(kernels.STATE_SIZE, np.int64)
        return decode_blocks(self._event_words(state), kernels.decode_libcaer, state)

    def _event_words(self, state: IntArray) -> Iterator[Block]:
        """Yield the valid words of each packet, with the decoder's state at its start."""
        from cmaxslam_fbp.io.decoding_kernels import BASE_NS, NOW_US

        for packet in self._packets(_POLARITY):
            if packet.item_bytes != 8:
                raise RecordingError(
                    f"{packet.place} has events of {packet.item_bytes} bytes, not 8: the file is damaged"
                )
            words = np.frombuffer(packet.data, np.uint32).reshape(-1, 2)
            invalid = words[:, 0] & _VALID == 0
            state[BASE_NS], state[NOW_US] = (packet.overflows << 31) * 1000, -1
            yield words[~invalid] if invalid.any() else words, packet.place

    def _imu(self) -> ImuSamples | None:
        """Read the samples: g and deg/s, in the camera's axes as the driver gives them."""
        parts, times = [], []
        for packet in self._packets(_IMU6):
            if packet.item_bytes != _IMU_RECORD.itemsize:
                raise RecordingError(f"{packet.place} has IMU samples of {packet.item_bytes} bytes, not 36")
            samples = np.frombuffer(packet.data, _IMU_RECORD)
            samples = samples[samples["valid"] & _VALID != 0]
            parts.append(samples)
            times.append(1000 * ((packet.overflows << 31) + samples["t_us"].astype(np.int64)))
        if not sum(map(len, parts)):
            return None
        samples = np.concatenate(parts)
        with np.errstate(invalid="ignore"):  # numbers that are none are refused below
            turns, accelerations = (samples[name].astype(np.float64) for name in ("deg_s", "g"))
        return ImuSamples(np.concatenate(times), np.deg2rad(turns), _G_M_S2 * accelerations)
