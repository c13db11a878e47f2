"""How far the image travels over the sensor while the camera turns: what a motion can tell of a lens at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.trajectory.spline import RotationSpline

_TIMES = 120  # at which the motion is looked at
_PLACES = 13  # across the image, and as many down: one of them is near what a roll leaves in place
# Shares of the field of view, of the larger travel and of the smaller. With less the contrast still has a maximum, but
# it may be anywhere: on simulated motions focal lengths were wrong there by up to tens of percent.
_ENOUGH, _ENOUGH_ASIDE = 0.35, 0.2
_ENOUGH_ALONE = 0.7  # of a travel one way only
_UNTOLD_BY_ONE_WAY = ("aspect", "p1", "p2")


@dataclass(frozen=True)
class ImageTravel:
    """How far every place of the image travels across and down, as shares of what the sensor sees that way."""

    across: float
    down: float

    @property
    def tells_lens(self) -> bool:
        """Whether such a motion tells a lens.

        A roll, or small angles, look the same through every lens. Turns both ways tell it: a pan, a tilt and the way
        back add up to a roll, which the image shows. A pan or a tilt alone tells it by how tracks bend far from the
        middle, if they go far; but see `untold`.
        """
        most, least = max(self.across, self.down), min(self.across, self.down)
        return most >= _ENOUGH_ALONE or (most >= _ENOUGH and least >= _ENOUGH_ASIDE)

    @property
    def untold(self) -> tuple[str, ...]:
        """Parameters that such a motion does not tell, though it tells the lens otherwise.

        A pan does not give `fy`, nor a tilt `fx`: with it edges agree with themselves however much the image is
        stretched across its motion. And an axis that lies a little askew looks like tangential distortion.
        """
        return _UNTOLD_BY_ONE_WAY if min(self.across, self.down) < _ENOUGH_ASIDE else ()


def image_travel(rotations: RotationSpline, events: Events, camera: Camera) -> ImageTravel:
    """Return the travel of the place that travels least, between any two times of some events.

    A direction `b` of the image at one time is `d = R(s)^T R(t) b` of the image at another. It has gone across by
    `asin(d_x) - asin(b_x)`, and down by `asin(d_y) - asin(b_y)`. A roll leaves one place where it is, whatever the
    lens and its principal point: hence the least over the image. And as a share of the field of view the travel is
    that in pixels, which hardly changes with the focal length that was assumed.
    """
    R = rotations.rotations_at(events.t_ns[:: max(1, len(events) // _TIMES)])
    between = np.einsum("sji,tjk->stik", R, R).reshape(-1, 3, 3)
    rows, columns = (np.linspace(0, n - 1, _PLACES).astype(int) for n in (camera.height, camera.width))
    b = camera.bearings()[np.ix_(rows, columns)].reshape(-1, 3)
    return ImageTravel(*(_least_travel(b, between[:, axis], axis) for axis in (0, 1)))


def _least_travel(b: FloatArray, turned: FloatArray, axis: int) -> float:
    """Return the travel along an axis as a share of what is seen; rows (N, 3) of turns take `b` to that coordinate."""
    at = np.arcsin(b[:, axis])
    gone = np.arcsin(np.clip(turned @ b.T, -1, 1)) - at
    return float(np.abs(gone).max(axis=0).min() / np.ptp(at))
