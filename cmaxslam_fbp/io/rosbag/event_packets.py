"""`EventPacket` messages of today's ROS drivers: their fields, and the events in their encoded bytes.

`Header header; uint32 height; uint32 width; uint64 seq; uint64 time_base; string encoding; bool is_bigendian;
uint8[] events`, in `event_camera_msgs/EventPacket` and, before it was renamed, `event_array_msgs/EventArray`. The
metavision driver writes `evt3`, the libcaer driver `libcaer` and `libcaer_cmp`; `mono` is of older ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import IntArray
from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.io.decoding import EventRoom
from cmaxslam_fbp.nanoseconds import LARGEST_NS, NS_PER_S

EVENT_PACKET_TYPES = ("event_camera_msgs/msg/EventPacket", "event_array_msgs/msg/EventArray")

TRIGGER = "trigger"  # an encoding without events
_WORDS: dict[str, npt.DTypeLike] = {
    "evt3": "<u2",
    "libcaer": ("<u4", 2),
    "libcaer_cmp": "<u2",
    "mono": ("<u4", 2),
}
_SENSOR_CLOCK = ("evt3", "mono")  # encodings whose stamps count from the sensor's start


@dataclass(frozen=True)
class EventPacket:
    """One message; `stamp_ns` is that of its header, `time_base_ns` what some encodings count from."""

    size: SensorSize
    stamp_ns: int
    time_base_ns: int
    encoding: str
    is_bigendian: bool
    data: memoryview


def parse_packet(data: bytes, ros1: bool) -> EventPacket:
    """Return the fields of a serialised message of ROS 1, or of ROS 2 (CDR)."""
    if not ros1 and (len(data) < 4 or data[0] != 0 or data[1] not in (0, 1)):
        raise RecordingError("an event packet does not start with a plain CDR header")
    order = "<" if ros1 or data[1] == 1 else ">"
    at = 4  # behind the sequence number of ROS 1, and behind the header of CDR, from where its alignment counts

    def take(form: str) -> tuple[Any, ...]:
        """Take numbers of one kind, which CDR aligns to their size."""
        nonlocal at
        at += 0 if ros1 else -(at - 4) % struct.calcsize(f"={form[-1]}")
        values = struct.unpack_from(f"{order}{form}", data, at)
        at += struct.calcsize(f"{order}{form}")
        return values

    def take_bytes() -> memoryview:
        nonlocal at
        (length,) = take("I")
        at += length
        if at > len(data):
            raise RecordingError(
                f"an event packet of {len(data)} bytes has a part that ends at byte {at}: the message is cut, "
                "or its type is not an EventPacket"
            )
        return memoryview(data)[at - length : at]

    try:
        seconds, nanoseconds = take("2I")
        take_bytes()  # the frame's name
        height, width = take("2I")
        _, time_base_ns = take("2Q")
        encoding = bytes(take_bytes()).rstrip(b"\0").decode("latin-1")
        (is_bigendian,) = take("B")
        events = take_bytes()
    except struct.error:
        raise RecordingError(f"an event packet of {len(data)} bytes is too short for its fields") from None
    stamp_ns = seconds * NS_PER_S + nanoseconds
    return EventPacket(SensorSize(width, height), stamp_ns, time_base_ns, encoding, bool(is_bigendian), events)


class PacketDecoder:
    """Decodes the packets of one topic, in their order: what one leaves open, the next goes on with.

    Stamps that count from the sensor's start are moved to the clock of the messages, by the header of the first packet
    that has events: poses and IMU of the same bag count by that clock.
    """

    def __init__(self) -> None:
        self._room = EventRoom()
        self._states: dict[str, IntArray] = {}
        self._first: EventPacket | None = None
        self._has_events = False
        self._offset_ns: int | None = None

    def decode(self, packet: EventPacket) -> Iterator[Events]:
        """Yield the chunks of events that a packet completes."""
        if packet.encoding == TRIGGER:
            return
        if packet.encoding not in _WORDS:
            known = ", ".join(_WORDS)
            raise RecordingError(f"its encoding {packet.encoding[:40]!r} is not known; {known} are")
        if packet.is_bigendian:
            raise RecordingError("its events are big-endian, which no driver writes")
        if packet.time_base_ns > LARGEST_NS:
            raise RecordingError(f"its time base is {packet.time_base_ns} ns, which no clock shows")
        dtype = np.dtype(_WORDS[packet.encoding])
        if len(packet.data) % dtype.itemsize:
            raise RecordingError(
                f"its {len(packet.data)} bytes of events end within a word of {dtype.itemsize}: the message is cut"
            )
        if not self._has_events:
            self._first = replace(packet, data=memoryview(b""))
        decode, state = self._decoder(packet)
        # A copy is aligned, which a part of a message need not be.
        for events in self._room.fill(decode, np.frombuffer(bytes(packet.data), dtype), state):
            self._has_events = True
            yield self._on_the_messages_clock(events)
        self._has_events |= len(self._room) > 0

    def rest(self) -> Events:
        """Return the events since the last chunk."""
        return self._on_the_messages_clock(self._room.take())

    def _decoder(self, packet: EventPacket) -> tuple[Callable[..., Any], IntArray]:
        """Return the compiled loop of an encoding, and its state at the start of a packet."""
        from cmaxslam_fbp.io import decoding_kernels as kernels

        state = self._states.setdefault(packet.encoding, np.zeros(kernels.STATE_SIZE, np.int64))
        if packet.encoding != "evt3":
            state[[kernels.BASE_NS, kernels.NOW_US, kernels.HIGH, kernels.LOW]] = packet.time_base_ns, -1, 0, 0
        return getattr(kernels, f"decode_{packet.encoding}"), state

    def _on_the_messages_clock(self, events: Events) -> Events:
        if not len(events):
            return events
        first = self._first
        assert first is not None
        if self._offset_ns is None:
            has_stamp = first.encoding in _SENSOR_CLOCK and first.stamp_ns > 0
            self._offset_ns = first.stamp_ns - int(events.t_ns[0]) if has_stamp else 0
        np.add(events.t_ns, self._offset_ns, out=events.t_ns)
        return events
