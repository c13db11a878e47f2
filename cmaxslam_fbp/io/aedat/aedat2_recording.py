"""A recording of a DAVIS camera by jAER, in an AEDAT 2 file.

Lines of text that start with `#`, then pairs of big-endian 32-bit words: address and microseconds. The header names the
camera and holds jAER's preferences, the scales of the IMU among them. Columns count from the right, rows from below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.ordering import Piece
from cmaxslam_fbp.io.decoding import read_words
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

_LONGEST_HEADER = 16 << 20
_SIZES = {"DAVIS240": SensorSize(240, 180), "DAVIS346": SensorSize(346, 260), "DAVIS128": SensorSize(128, 128)}

_G_M_S2 = 9.80665
# Scales of the InvenSense MPU-6100 by its two bits FS_SEL, which also have names in jAER's preferences.
_DEG_S_PER_LSB = {"250": 1 / 131, "500": 1 / 65.5, "1000": 1 / 32.8, "2000": 1 / 16.4}
_G_PER_LSB = {"2": 1 / 16384, "4": 1 / 8192, "8": 1 / 4096, "16": 1 / 2048}
# The IMU's axes point left, down and back where the camera's point right, down and forward.
_IMU_TO_CAMERA = np.array([-1.0, 1.0, -1.0])


class Aedat2Recording(Recording):
    """Events and IMU of a DAVIS240 or DAVIS346; frames and external inputs are passed over."""

    description = "an AEDAT 2 file of a DAVIS"
    first_bytes = b"#!AER-DAT2"

    def _examine(self) -> None:
        with self.path.open("rb") as file:
            head = file.read(_LONGEST_HEADER)
        # A line with a zero byte is data: the last byte of an event's address is always zero.
        header = re.match(rb"(?:#[^\0\n]*\n)+", head)
        if header is None:
            raise RecordingError(f"{self.path} has the header of no AEDAT 2 file: a line has no end")
        self._data_start = header.end()
        text = header.group().decode("latin-1")
        chip = re.search(r"^# ?AEChip: *(?:.*\.)?(\w+)\s*$", text, re.MULTILINE)
        self._chip = chip.group(1) if chip else None
        self._preferences = dict(re.findall(r'key="([^"]*)" value="([^"]*)"', text))
        if self._chip and self._chip_size() is None:
            raise RecordingError(f"{self.path} is of a camera {self._chip[:40]}; only DAVIS240 and DAVIS346 are read")

    def _chip_size(self) -> SensorSize | None:
        """Return the size of the camera that the header names: of a DAVIS346blue that of a DAVIS346."""
        return _SIZES.get((self._chip or "").upper()[:8])

    def _own_sensor_size(self) -> SensorSize | None:
        return self._chip_size()

    def topics(self) -> list[tuple[str, str, int]]:
        """Return the camera and the number of words in the file."""
        return [(self._chip or "DAVIS", "AEDAT 2 words", (self.path.stat().st_size - self._data_start) // 8)]

    def _decoded(self) -> Iterator[tuple[Events, IntArray, npt.NDArray[np.uint32], str]]:
        """Yield events, times and addresses of IMU words, and the place, block by block."""
        from cmaxslam_fbp.io.decoding_kernels import decode_davis

        size = self._chip_size() or self.sensor_size
        now_us = -1
        for pairs, place in read_words(self.path, self._data_start, np.dtype((">u4", 2))):
            words, events = pairs.astype(np.uint32), Events.room_for(len(pairs))
            imu_t_ns, imu = np.empty(len(words), np.int64), np.empty(len(words), np.uint32)
            columns = (events.t_ns, events.x, events.y, events.p, imu_t_ns, imu)
            count, samples, now_us = decode_davis(words, now_us, size.width - 1, size.height - 1, *columns)
            yield events[:count], imu_t_ns[:samples], imu[:samples], place

    def _pieces(self, skip_before_ns: int | None) -> Iterator[Piece]:
        for events, _, _, place in self._decoded():
            yield Piece(events, place)

    def _imu(self) -> ImuSamples | None:
        """Read samples of seven words each: acceleration x y z, temperature, angular velocity x y z."""
        blocks = [(t_ns.copy(), words.copy()) for _, t_ns, words, _ in self._decoded()]
        if sum(len(words) for _, words in blocks) < 7:
            return None
        t_ns, words = np.concatenate([t for t, _ in blocks]), np.concatenate([w for _, w in blocks])
        parts = np.lib.stride_tricks.sliding_window_view(words, 7)
        whole = np.flatnonzero(((parts >> 28) & 7 == np.arange(7)).all(axis=1))
        values = ((parts[whole] >> 12) & 0xFFFF).astype(np.uint16).view(np.int16)
        if not len(whole):
            return None
        turn = np.deg2rad(self._scale("Gyro", _DEG_S_PER_LSB, "1000", 3))
        push = _G_M_S2 * self._scale("Accel", _G_PER_LSB, "8", 4)
        return ImuSamples(t_ns[whole], turn * _IMU_TO_CAMERA * values[:, 4:], push * _IMU_TO_CAMERA * values[:, :3])

    def _scale(self, what: str, scales: dict[str, float], usual: str, register: int) -> float:
        """Return what one step of the IMU stands for: as jAER's preferences say, else as it sets the IMU by itself."""
        for key in (f"{self._chip}.IMU.{what}Scale", f"IMU.{what}Scale", f"Imu{what}Scale"):
            named = re.search(r"\d+$", self._preferences.get(key, ""))
            if named and named.group() in scales:
                return scales[named.group()]
        bits = self._preferences.get(f"CPLDByte.imu{register}_{what.upper()}_CONFIG", "")  # of the older FX2 cameras
        if bits.isdecimal() and len(bits) < 4:
            return list(scales.values())[int(bits) >> 3 & 3]
        return scales[usual]
