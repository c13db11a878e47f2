"""What the header of a RAW file or stream says of its words, and their decoding, block after block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io.event_room import EventRoom
from cmaxslam_fbp.io.packed_events import PACKED, camera_of
from cmaxslam_fbp.io.prophesee.header import size_of
from cmaxslam_fbp.io.rosbag.ros_messages import ROS1_EVENT, from_ros1

_NAMES = {"2.0": "EVT2", "2": "EVT2", "2.1": "EVT21", "3.0": "EVT3", "3": "EVT3"}
_WORDS: dict[str, npt.DTypeLike] = {"EVT2": "<u4", "EVT21": ("<u4", 2), "EVT3": "<u2", PACKED: ROS1_EVENT}
_TIME_HIGH = 0x8
_EVT21_TYPES = (0x0, 0x1, _TIME_HIGH, 0xA, 0xE, 0xF)
_GENERATIONS = {"3.0": SensorSize(640, 480), "3.1": SensorSize(640, 480)}
_GENERATIONS |= dict.fromkeys(("4.0", "4.1", "4.2"), SensorSize(1280, 720))


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
        width, _, height = self._header.get("geometry", "").partition("x")
        generation = self._header.get("sensor_generation", self._header.get("generation", ""))
        return (
            size_of(width, height)
            or size_of(self.fields.get("width"), self.fields.get("height"))
            or _GENERATIONS.get(generation)
        )

    def camera(self) -> Camera | None:
        """Return the calibration of packed events, where the header has one."""
        return camera_of(self._header, self.sensor_size()) if self.encoding == PACKED else None

    def decoder(self) -> RawDecoder:
        """Return a decoder of one pass over the data."""
        return RawDecoder(self)


class RawDecoder:
    """Decodes the words of one pass, block after block."""

    def __init__(self, form: RawFormat) -> None:
        from cmaxslam_fbp.io.prophesee import evt_kernels

        self._form, self._kernels = form, evt_kernels
        self._room, self._state = EventRoom(), np.zeros(evt_kernels.STATE_SIZE, np.int64)
        self._decode: Callable[..., Any] | None = None

    def decode(self, words: npt.NDArray[Any]) -> Iterator[Events]:
        """Decode a block; yield the events whenever a chunk of them is full."""
        if self._form.encoding == PACKED:
            yield from_ros1(words)
            return
        words = words.astype(words.dtype.newbyteorder("<"), copy=False)
        if self._decode is None:
            legacy = self._form.encoding == "EVT21" and self._has_swapped_halves(words)
            self._decode = getattr(self._kernels, f"decode_{self._form.encoding.lower()}{'_legacy' * legacy}")
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
