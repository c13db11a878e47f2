"""Rest: packets without evidence of a motion, of which not each is looked at again."""

from __future__ import annotations

from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.nanoseconds import NS_PER_S

_SKIPPED = 5  # one packet of so many is looked at, as long as events come as before
_CHANGE, _SIGMAS = 0.1, 4.0  # of the rate of events, and of its own chance, after which a packet is looked at at once
_SEARCH = 2  # of the packets that are looked at, one of so many is searched for any motion


class Rest:
    """Remembers how many events came while there was no evidence of a motion.

    A camera that begins to move causes more events. As long as there are no more of them, one packet of a few is
    enough to see that nothing has begun.
    """

    def __init__(self) -> None:
        self._rate_ev_s: float | None = None
        self._packets = self._looks = 0

    @property
    def wants_search(self) -> bool:
        """Whether the next packet should be searched for any motion."""
        return self._looks % _SEARCH == 0

    def goes_on(self, packet: Packet) -> bool:
        """Tell whether a packet need not be looked at."""
        self._packets += 1
        if self._rate_ev_s is None or self._packets % _SKIPPED == 0:
            return False
        count, duration_s = len(packet.events), _duration_s(packet)
        usual = self._rate_ev_s * duration_s
        return abs(count - usual) <= _CHANGE * usual + _SIGMAS * usual**0.5

    def begin(self, packet: Packet) -> None:
        """Take note of a packet without evidence."""
        self._rate_ev_s = len(packet.events) / max(_duration_s(packet), 1e-9)
        self._looks += 1

    def end(self) -> None:
        """Take note of a packet with evidence."""
        self._rate_ev_s = None


def _duration_s(packet: Packet) -> float:
    return int(packet.events.t_ns[-1] - packet.events.t_ns[0]) / NS_PER_S
