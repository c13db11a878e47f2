"""Whether a packet of events shows a motion at all: is its sharpest image sharper than chance makes it?"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend.evidence_kernels import factorial_moments, first_of_pixels, sum_of_cubes
from cmaxslam_fbp.frontend.objectives import Pyramid
from cmaxslam_fbp.frontend.packet_events import PacketEvents
from cmaxslam_fbp.geometry.camera import Camera

_BESIDE_BINS = 6.0  # distance of the velocities to compare with, in bins of motion at the packet's end
_MOST_EVENTS = 20_000  # of a packet, every n-th
_ENOUGH = 4.0  # times what is asked: then one axis is enough
_PLAIN = 1.5  # times what is asked: where a lower bound is this much, no more is computed

_SKIPPED = 5  # one packet of so many is looked at, as long as events come as before
_CHANGE, _SIGMAS = 0.1, 4.0  # of the rate of events, and of its own chance, after which a packet is looked at at once
_SEARCH = 2  # of the packets that are looked at, one of so many is searched for any motion


def deviations_from_still(sharpness: float, still_sharpness: float, still_image: SingleArray, count: int) -> float:
    """Return the deviations against the image at zero velocity alone, which is known already.

    There events agree at least as much as at other velocities beside the optimum: these deviations are hardly ever more
    than those of `Evidence`.

    Parameters
    ----------
    sharpness, still_sharpness : variance over squared mean of the images of counts, at the optimum and at zero
    still_image : counts at zero velocity
    count : of the events
    """
    h = still_image.reshape(-1)
    squares, still_squares = (count**2 / h.size * (1 + ratio) for ratio in (sharpness, still_sharpness))  # sum h^2
    # The ratios take all events as on the image: so must the cubes, or the variance could be negative.
    inside = max(float(h.sum(dtype=np.float64)), 1.0)
    triples = float(sum_of_cubes(h)) * (count / inside) ** 3 - 3 * still_squares + 2 * count
    return _in_deviations(squares - count, count, still_squares - count, triples)


class Evidence:
    """Tells by how many standard deviations the events of a packet agree more than by chance.

    `N` events that are scattered over bins with the mean intensities `lambda_j` make `M2 = sum_j h_j (h_j - 1)` pairs,
    in the mean `sum lambda^2`, with the variance `2 sum lambda^2 + 4 (sum lambda^3 - (sum lambda^2)^2 / N)`; and
    `sum_j h_j (h_j - 1) (h_j - 2)` is `sum lambda^3` in the mean. The intensities are those of the same events moved
    by other velocities: as dense, but not aligned. They lie on both sides along each parameter; the axis along which
    the agreement falls most counts, since edges of one direction agree all along another. At a velocity that maximises
    the contrast, scattered events give about three deviations, and hardly ever more than eight.

    What agrees on a still sensor must not count as a motion of zero. Of a pixel only its first few events are taken: a
    hot one has many. They lie anywhere on their pixels here, as bins may hold two pixels, or three. And of very many
    events some are enough: with more, even the border of the sensor would count.

    Parameters
    ----------
    pyramid : the grid
    camera : with its calibration
    """

    def __init__(self, pyramid: Pyramid, camera: Camera) -> None:
        self._pyramid = pyramid
        self._size = camera.width, camera.height
        uniform = np.random.default_rng(0).random((2, _MOST_EVENTS), np.float32)
        self._offsets: SingleArray = (uniform - np.float32(0.5)) / np.float32(max(camera.fx, camera.fy))
        self._taken = np.empty(_MOST_EVENTS, np.int64)

    def can_tell(self, reach_s: float, max_speed: float) -> bool:
        """Tell whether other velocities that are plausible can be compared: in a very short packet nothing moves."""
        return _BESIDE_BINS * self._pyramid.grid.speed_of_one_bin(reach_s) <= max_speed

    def is_enough(
        self, events: Events, points: PacketEvents, velocity: FloatArray, wanted: float, least_deviations: float = 0.0
    ) -> bool:
        """Tell whether events agree by so many deviations at a velocity, 0 for any; a lower bound may be known."""
        if wanted == 0 or least_deviations > _PLAIN * wanted:
            return True
        return self(events, points, velocity, wanted) >= wanted

    def __call__(self, events: Events, points: PacketEvents, velocity: FloatArray, wanted: float) -> float:
        """Return the deviations of a packet's events, whose points are looked up, at a velocity.

        Where the first axis gives several times as many as are `wanted`, the others are not looked at.
        """
        objective, unit = self._pyramid.level(1, self._spread(events, points))
        most = -np.inf
        for axis in np.eye(len(velocity)):
            most = max(most, deviations_along(objective, unit, velocity, axis))
            if most > _ENOUGH * wanted:
                break
        return most

    def _spread(self, events: Events, points: PacketEvents) -> PacketEvents:
        """Return the events to take, without signs, spread over their pixels."""
        width, height = self._size
        step = -(-len(events) // _MOST_EVENTS)
        seen = np.zeros(width * height, np.uint8)
        taken = self._taken[: first_of_pixels(events.x, events.y, width, step, seen, self._taken)]
        x, y = self._offsets[:, : len(taken)]
        return PacketEvents(points.x[taken] + x, points.y[taken] + y, points.dt_s[taken])


def deviations_along(objective: Any, unit: float, velocity: FloatArray, axis: FloatArray) -> float:
    """Return the deviations of an objective's events at a velocity against those beside it along an axis.

    See `Evidence`.

    Parameters
    ----------
    objective : makes the image of the events at a velocity
    unit : speed at which the first or the last event moves by a bin
    velocity : (P,) one that maximises the contrast
    axis : (P,) of unit length
    """
    count, pairs, _ = _moments_at(objective, velocity)
    offset = _BESIDE_BINS * unit * axis
    beside = np.array([_moments_at(objective, velocity + side) for side in (offset, -offset)])
    # Where events leave the grid, those that are left are compared as if they were as many.
    beside *= (count / np.maximum(beside[:, :1], 1.0)) ** np.arange(1, 4)
    _, chance, triples = beside.mean(axis=0)
    return _in_deviations(pairs, count, chance, triples)


def _in_deviations(pairs: float, count: float, chance: float, triples: float) -> float:
    """Return by how many standard deviations there are more pairs than by chance."""
    variance = 2 * chance + 4 * max(triples - chance**2 / max(count, 1.0), 0.0) + 2
    return (pairs - chance) / float(np.sqrt(variance))


def _moments_at(objective: Any, velocity: FloatArray) -> tuple[float, float, float]:
    """Return `sum h`, `sum h (h - 1)` and `sum h (h - 1) (h - 2)` of the image at a velocity."""
    objective.make_image(velocity)
    moments: tuple[float, float, float] = factorial_moments(objective.image.reshape(-1))
    return moments


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
        count, duration_s = len(packet.events), packet.duration_s
        usual = self._rate_ev_s * duration_s
        return abs(count - usual) <= _CHANGE * usual + _SIGMAS * usual**0.5

    def begin(self, packet: Packet) -> None:
        """Take note of a packet without evidence."""
        self._rate_ev_s = len(packet.events) / max(packet.duration_s, 1e-9)
        self._looks += 1

    def end(self) -> None:
        """Take note of a packet with evidence."""
        self._rate_ev_s = None
