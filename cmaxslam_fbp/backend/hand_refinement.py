"""Refinement of a hand-held recording: rotation, translation and distances, adjusted to all events at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from cmaxslam_fbp.arrays import FloatArray, IntArray, SingleArray
from cmaxslam_fbp.backend.hand_motion import HandMotion, HandState, Priors, optical_axes
from cmaxslam_fbp.backend.hand_objective import HandObjective
from cmaxslam_fbp.backend.parallax_warp import ParallaxWarp
from cmaxslam_fbp.backend.scene_distances import TABLE, SceneDistances, as_single, directions
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.fbp import Binning
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.geometry.equirectangular import Equirectangular
from cmaxslam_fbp.geometry.rotation import Rotation
from cmaxslam_fbp.trajectory.position_spline import PositionSpline
from cmaxslam_fbp.trajectory.spline import RotationSpline

MOST_PASSAGES = 1_000_000  # that the adjustment uses: every n-th of more

_SLOT_NS = 5_000_000  # time over which the motion is taken as linear
_KNOTS = 2  # knots of the rotation per knot of the position: a hand has mass
_MIN_EVENTS = 10.0  # of a control, where there are hardly any
# Expected curvatures of the score, per event and square pixel: of a turn; of a move, which after its compensation shows
# only towards the image's border; and of a relative change of the distances, which only the parallax shows.
_TURN_SHARE, _MOVE_SHARE, _DISTANCE_SHARE = 1.0, 0.1, 0.001
_CHANGE = 1e-9  # relative, of the score: the binning's noise is about as large
_HOT, _FEWEST = 3, 20  # a hot pixel has so many times the passages of each neighbour, and so many more


@dataclass(frozen=True)
class HandStage:
    """From coarse to fine: width of the map, its blur, the degree of the distances, iterations."""

    width: int
    blur_sigma_px: float
    degree: int
    iterations: int


STAGES = (
    HandStage(1024, 2.0, 0, 40),
    HandStage(1024, 1.0, 2, 50),
    HandStage(1024, 0.7, 4, 60),
    HandStage(2048, 1.0, 4, 40),
)


@dataclass(frozen=True)
class HandHeld:
    """A motion with translation, and the scene that explains it; lengths are in mean scene distances.

    Attributes
    ----------
    rotations, positions : the motion; positions count from the map's centre, the mean position of the camera
    inverse : (rows, columns) inverse distances of the scene from that centre, on an equirectangular image
    seen : (rows, columns) bool, where events tell the distance
    """

    rotations: RotationSpline
    positions: PositionSpline
    inverse: FloatArray
    seen: npt.NDArray[np.bool_]

    @property
    def parallax_deg(self) -> float:
        """RMS angle by which the camera's displacement moves what it sees: `|c|` as an angle at the mean distance."""
        controls = self.positions.controls
        return float(np.degrees(np.sqrt((controls**2).sum(axis=1).mean())))


class HandRefinement:
    """Adjusts a whole recording, starting from a rotation.

    Parameters
    ----------
    camera : of the recording
    passages : all events to adjust to, ordered by time, within the spline
    rotations : the estimate to start from
    model : `sphere`, one distance for all directions; or `scene`
    """

    def __init__(
        self,
        camera: Camera,
        passages: Events,
        rotations: RotationSpline,
        model: Literal["sphere", "scene"] = "scene",
        stages: tuple[HandStage, ...] = STAGES,
        priors: Priors | None = None,
    ) -> None:
        self._camera, self._priors = camera, priors or Priors()
        self._stages = stages if model == "scene" else tuple(replace(stage, degree=0) for stage in stages)
        self._all = without_hot_pixels(passages, camera)
        every = max(1, -(-len(self._all) // MOST_PASSAGES))
        self._warp = self._new_warp(self._all[::every], rotations)
        step_ns = _KNOTS * rotations.step_ns
        count = -(-(rotations.end_ns - rotations.start_ns) // step_ns) + rotations.order - 1
        still = PositionSpline(rotations.order, rotations.start_ns, step_ns, np.zeros((count, 3)))
        self._state = HandState(rotations, still, np.zeros(0))
        self._distances = SceneDistances(0, np.ones(TABLE.width * TABLE.height))
        self.evaluations = 0

    def run(self) -> Iterator[str]:
        """Adjust; yields what has been done."""
        for number, stage in enumerate(self._stages):
            self._adjust(stage)
            yield f"hand-held {number + 1} of {len(self._stages)}"

    def result(self) -> HandHeld:
        """Return what was found, in a world whose first orientation is the identity."""
        state = self._state
        first = Rotation.from_quat(state.rotations.quaternions_at(state.rotations.start_ns)).inv()
        turned = (first * Rotation.from_quat(state.rotations.quaternions_xyzw)).as_quat()
        table = self._distances.everywhere(state.coefficients)
        self._warp.locate(self._warp.poses(state.rotations, state.positions), as_single(table.reshape(-1)))
        seen = np.bincount(self._warp.cells, minlength=table.size) > 0
        before = first.inv().apply(directions(TABLE))
        cells = _cells(before)
        return HandHeld(
            replace(state.rotations, quaternions_xyzw=turned),
            replace(state.positions, controls=first.apply(state.positions.controls)),
            table.reshape(-1)[cells].reshape(table.shape),
            seen[cells].reshape(table.shape),
        )

    def panorama(self, found: HandHeld, size: tuple[int, int]) -> SingleArray:
        """Return the map (height, width) of all events, along a motion and with the distances of its scene."""
        projection = Equirectangular(*size)
        warp = self._new_warp(self._all, found.rotations)
        inverse, poses = as_single(found.inverse.reshape(-1)), warp.poses(found.rotations, found.positions)
        warp.locate(poses, inverse)
        points, weights = np.empty((len(warp), 2), np.float32), np.empty(len(warp), np.float32)
        warp.points(poses, inverse, projection, None, points, weights)
        points[:, 1] = np.where(points[:, 1] >= projection.width - 0.5, 0, points[:, 1])
        return np.asarray(Binning((projection.height, projection.width))(points), np.float32)

    def _new_warp(self, events: Events, rotations: RotationSpline) -> ParallaxWarp:
        bearings = self._camera.bearings().astype(np.float32)
        return ParallaxWarp(events, bearings, rotations.start_ns, rotations.end_ns, _SLOT_NS, TABLE)

    def _adjust(self, stage: HandStage) -> None:
        """Adjust everything at one stage: what was found is the start, and where it looks decides the cells."""
        state, warp = self._state, self._warp
        projection = Equirectangular(stage.width, stage.width // 2)
        table = self._distances.everywhere(state.coefficients).reshape(-1)
        warp.locate(warp.poses(state.rotations, state.positions), as_single(table))
        counts = np.bincount(warp.cells, minlength=len(table)).astype(np.float64)
        distances = SceneDistances(stage.degree, counts)
        start = replace(state, coefficients=distances.fit(table))
        per_event = projection.focal_px**2
        spline = start.rotations
        placed = PositionSpline(spline.order, spline.start_ns, spline.step_ns, np.zeros((len(spline), 3)))
        curvatures = (
            per_event * _TURN_SHARE * self._events_of(placed),
            per_event * _MOVE_SHARE * self._events_of(start.positions),
            per_event * _DISTANCE_SHARE * len(warp),
        )
        inverse = distances.everywhere(start.coefficients).reshape(-1)[_cells(optical_axes(start.rotations))]
        motion = HandMotion(start, distances, inverse, self._priors, curvatures)
        objective = HandObjective(warp, motion, distances, projection, stage.blur_sigma_px, self._priors)
        options = {"maxiter": stage.iterations, "maxfun": 2 * stage.iterations, "maxcor": 20, "ftol": _CHANGE}
        found = minimize(objective, np.zeros(motion.parameter_count), jac=True, method="L-BFGS-B", options=options)
        self._state, self._distances = motion.state(np.asarray(found.x, np.float64)), distances
        self.evaluations += objective.evaluations

    def _events_of(self, spline: PositionSpline) -> FloatArray:
        """Return how many events each control of a spline speaks for (K,), at least a few."""
        first, weights = spline.weights_at(self._warp.edges_ns)
        counts = np.full(len(spline), _MIN_EVENTS)
        for j in range(spline.order):
            counts += np.bincount(first + j, weights[:, j] * self._warp.events_per_edge, minlength=len(spline))
        return counts


def without_hot_pixels(passages: Events, camera: Camera) -> Events:
    """Return passages without those of pixels that have many times as many as any neighbour.

    A hot pixel moves with the camera: where little else happens it would tell that the camera rests.
    """
    counts = np.zeros((camera.height, camera.width), np.int64)
    np.add.at(counts, (passages.y, passages.x), 1)
    padded = np.pad(counts, 1)
    shifted = [
        padded[1 + i : 1 + i + camera.height, 1 + j : 1 + j + camera.width]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if i or j
    ]
    hot = counts > _HOT * np.max(shifted, axis=0) + _FEWEST
    return passages[~hot[passages.y, passages.x]] if hot.any() else passages


def _cells(rays: FloatArray) -> IntArray:
    """Return the cells (N,) of the table that directions (N, 3) point to."""
    x, y = TABLE.project(rays).T
    rows = np.clip(np.rint(y), 0, TABLE.height - 1).astype(np.int64)
    return rows * TABLE.width + np.rint(x).astype(np.int64) % TABLE.width
