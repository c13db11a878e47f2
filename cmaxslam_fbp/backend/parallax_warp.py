"""The events of a recording on the panorama, as a function of the camera's path and of the scene's distances."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend import parallax_warp_kernels as kernels
from cmaxslam_fbp.backend.panoramic_warp import HasRotations, SlottedEvents
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.equirectangular import Equirectangular

_AXIS_SHARE = 0.9  # mean cosine of the angle between the events' directions and the optical axis


class HasPositions(Protocol):
    """A path."""

    def positions_at(self, t_ns: npt.ArrayLike) -> FloatArray:
        """Return positions (T, 3) at times (T,)."""
        ...


class ParallaxWarp(SlottedEvents):
    """Carries events to the panorama: `p_i = pi(R(t_i) b_i + rho_i c(t_i))`, with the weight `exp(-rho_i c.d_i)`.

    `rho_i` is looked up in a table of inverse distances, in the direction that `locate` found last. The equations stand
    in `parallax_warp_kernels`.

    The motion is taken as linear in each slot.

    Parameters
    ----------
    events, bearings, start_ns, end_ns, slot_ns : as in `SlottedEvents`
    table : the panorama of the table of inverse distances
    has_map : whether the events meet a map of earlier ones: then the mean weight of each slot is one
    """

    def __init__(
        self,
        events: Events,
        bearings: SingleArray,
        start_ns: int,
        end_ns: int,
        slot_ns: int,
        table: Equirectangular,
        *,
        has_map: bool = False,
    ) -> None:
        super().__init__(events, bearings, start_ns, end_ns, slot_ns)
        self.table = table
        self.cells: npt.NDArray[np.int32] = np.zeros(len(events), np.int32)
        # What all slots have in common stays in the weights where events meet only one another.
        self._shares = np.zeros(len(self._first) - 1) if has_map else np.diff(self._first) / max(len(events), 1)
        self._weights: SingleArray = np.empty(len(events), np.float32)

    def poses(self, rotations: HasRotations, positions: HasPositions) -> SingleArray:
        """Return rotation and position (S + 1, 12) at the edges of the slots."""
        turned = rotations.rotations_at(self.edges_ns).reshape(-1, 9)
        return np.hstack([turned, positions.positions_at(self.edges_ns)]).astype(np.float32)

    def gains(self, poses: SingleArray) -> SingleArray:
        """Return `a = exp(k (c.f - mean c.f))` (S,), by which no slot counts more or less where it is displaced.

        `c.f` is how far ahead, along the optical axis, the camera is at the start of each slot. With a map there is no
        mean: a window that could weigh more would gain from being behind its place.
        """
        ahead = np.einsum("mi,mi->m", poses[:-1, 2:9:3].astype(np.float64), poses[:-1, 9:].astype(np.float64))
        return np.asarray(np.exp(_AXIS_SHARE * (ahead - self._shares @ ahead)), np.float32)

    def locate(self, poses: SingleArray, inverse: SingleArray) -> None:
        """Find for each event the cell of the table that it looks at, from the map's centre, along these poses."""
        points = np.empty((len(self), 2), np.float32)
        self.points(poses, inverse, self.table, None, points, self._weights)
        rows = np.clip(np.rint(points[:, 0]), 0, self.table.height - 1).astype(np.int32)
        columns = np.rint(points[:, 1]).astype(np.int32) % self.table.width
        self.cells = rows * np.int32(self.table.width) + columns

    def points(
        self,
        poses: SingleArray,
        inverse: SingleArray,
        projection: Equirectangular,
        region: Region | None,
        points: SingleArray,
        weights: SingleArray,
    ) -> None:
        """Write row and column (N, 2) of every event, in the frame of a region or in the panorama, and its weight."""
        corner = (0, 0, 0) if region is None else (region.top, region.left, region.padding)
        kernels.warp(
            self._first, self._place, self._bearings, self.cells, poses, inverse, self.gains(poses),
            *(np.float32(n) for n in (projection.width, projection.height, projection.focal_px, *corner)),
            points.reshape(-1), weights,
        )  # fmt: skip

    def pullback(
        self,
        poses: SingleArray,
        inverse: SingleArray,
        projection: Equirectangular,
        points_bar: SingleArray,
        weights_bar: SingleArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients by left turns (S + 1, 3) and positions (S + 1, 3) of the edges, and by the table."""
        by_turn, by_position = np.empty((len(self.edges_ns), 3)), np.empty((len(self.edges_ns), 3))
        by_inverse, by_gain = np.empty(len(inverse)), np.empty(len(self.edges_ns) - 1)
        gains = self.gains(poses)
        kernels.pullback(
            self._first, self._place, self._bearings, self.cells, poses, inverse, gains,
            np.float32(projection.focal_px), points_bar.reshape(-1), weights_bar,
            by_turn, by_position, by_inverse, by_gain,
        )  # fmt: skip
        by_ahead = _AXIS_SHARE * gains * by_gain
        by_ahead -= self._shares * by_ahead.sum()
        axes, centres = poses[:-1, 2:9:3], poses[:-1, 9:]
        by_position[:-1] += by_ahead[:, None] * axes
        by_turn[:-1] += by_ahead[:, None] * np.cross(axes, centres)
        return by_turn, by_position, by_inverse
