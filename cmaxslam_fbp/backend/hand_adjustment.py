"""One adjustment of rotation, translation and distances to events: of a whole recording, or of a window of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

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

KNOTS = 2  # knots of the rotation per knot of the position: a hand has mass

_SLOT_NS = 5_000_000  # time over which the motion is taken as linear
# Expected curvatures of the score, per event and square pixel: of a turn; of a move, which after its compensation shows
# only towards the image's border; and of a relative change of the distances, which only the parallax shows.
_TURN_SHARE, _MOVE_SHARE, _DISTANCE_SHARE = 1.0, 0.1, 0.001
_CHANGE = 1e-9  # relative, of the score: the binning's noise is about as large


@dataclass(frozen=True)
class HandStage:
    """From coarse to fine: width of the map, its blur, the degree of the distances, iterations."""

    width: int
    blur_sigma_px: float
    degree: int
    iterations: int


@dataclass(frozen=True)
class HandHeld:
    """A motion with translation, and the scene that explains it; lengths are in mean scene distances.

    Attributes
    ----------
    rotations, positions : the motion; positions count from the map's centre
    inverse : (rows, columns) inverse distances of the scene from that centre, on an equirectangular image
    seen : (rows, columns) how many events tell the distance
    """

    rotations: RotationSpline
    positions: PositionSpline
    inverse: FloatArray
    seen: npt.NDArray[np.float64]

    @classmethod
    def of_rotation(cls, rotations: RotationSpline) -> HandHeld:
        """Return a camera that only turns, inside a sphere."""
        step_ns = KNOTS * rotations.step_ns
        count = -(-(rotations.end_ns - rotations.start_ns) // step_ns) + rotations.order - 1
        still = PositionSpline(rotations.order, rotations.start_ns, step_ns, np.zeros((count, 3)))
        shape = TABLE.height, TABLE.width
        return cls(rotations, still, np.ones(shape), np.zeros(shape))

    @property
    def parallax_deg(self) -> float:
        """RMS angle by which the camera's displacement from its mean place moves what it sees, at the mean distance."""
        controls = self.positions.controls - self.positions.controls.mean(axis=0)
        return float(np.degrees(np.sqrt((controls**2).sum(axis=1).mean())))

    def in_mean_distances(self) -> HandHeld:
        """Return the same in another unit, in which `log rho` has a mean of zero over what is seen."""
        mean = float((self.seen * np.log(self.inverse)).sum() / max(self.seen.sum(), 1.0))
        positions = replace(self.positions, controls=np.exp(mean) * self.positions.controls)
        return replace(self, positions=positions, inverse=np.exp(-mean) * self.inverse)

    def from_first_orientation(self) -> HandHeld:
        """Return the same in a world whose first orientation is the identity."""
        first = Rotation.from_quat(self.rotations.quaternions_at(self.rotations.start_ns)).inv()
        turned = (first * Rotation.from_quat(self.rotations.quaternions_xyzw)).as_quat()
        cells = cells_of(first.inv().apply(directions(TABLE)))
        return HandHeld(
            replace(self.rotations, quaternions_xyzw=turned),
            replace(self.positions, controls=first.apply(self.positions.controls)),
            self.inverse.reshape(-1)[cells].reshape(self.inverse.shape),
            self.seen.reshape(-1)[cells].reshape(self.seen.shape),
        )


@dataclass(frozen=True)
class Past:
    """What was before a window, which it is adjusted against.

    Attributes
    ----------
    image : (height, width) float32, the map of earlier events, as wide as the stage's
    seen : (rows, columns) how many of them told the distance of each direction
    held : how many controls at the start of the window stay
    """

    image: SingleArray
    seen: FloatArray
    held: int


class HandAdjuster:
    """Adjusts a motion and distances to events by L-BFGS."""

    def __init__(self, camera: Camera) -> None:
        self._bearings: SingleArray = camera.bearings().astype(np.float32)
        self.evaluations = 0
        self.gain = 0.0  # of the last adjustment, relative to the score before it

    def warp(self, events: Events, start_ns: int, end_ns: int, *, has_map: bool = False) -> ParallaxWarp:
        """Return the warp of events that lie between two times."""
        return ParallaxWarp(events, self._bearings, start_ns, end_ns, _SLOT_NS, TABLE, has_map=has_map)

    def adjust(self, warp: ParallaxWarp, start: HandHeld, stage: HandStage, past: Past | None = None) -> HandHeld:
        """Return what explains the events best near a start; where they look is decided by the start."""
        if not len(warp):
            return start
        start = replace(start, seen=self.seen(warp, start) + (0.0 if past is None else past.seen))
        projection = Equirectangular(stage.width, stage.width // 2)
        distances = SceneDistances(stage.degree, start.seen.reshape(-1))
        state = HandState(start.rotations, start.positions, distances.fit(start.inverse.reshape(-1)))
        per_event, spline = projection.focal_px**2, start.rotations
        by_distances = per_event * _DISTANCE_SHARE
        curvatures = (
            per_event * _TURN_SHARE * warp.events_of_controls(spline),
            per_event * _MOVE_SHARE * warp.events_of_controls(start.positions),
            by_distances * float(start.seen.sum()),
        )
        axis_inverse = distances.everywhere(state.coefficients).reshape(-1)[cells_of(optical_axes(spline))]
        held, image = (0, None) if past is None else (past.held, past.image)
        memory = 0.0 if past is None else by_distances * float(past.seen.sum())
        priors = Priors()
        motion = HandMotion(state, distances, axis_inverse, priors, curvatures, held)
        objective = HandObjective(
            warp, motion, distances, projection, stage.blur_sigma_px, priors, known=image, memory=memory
        )
        found = self._minimised(objective, motion, stage)
        return HandHeld(found.rotations, found.positions, distances.everywhere(found.coefficients), start.seen)

    def _minimised(self, objective: HandObjective, motion: HandMotion, stage: HandStage) -> HandState:
        from scipy.optimize import minimize

        start = np.zeros(motion.parameter_count)
        before = objective(start)[0]
        options = {"maxiter": stage.iterations, "maxfun": 2 * stage.iterations, "maxcor": 20, "ftol": _CHANGE}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        self.evaluations += objective.evaluations
        self.gain = (before - float(found.fun)) / max(-before, 1e-9)
        return motion.state(np.asarray(found.x, np.float64))

    def seen(self, warp: ParallaxWarp, found: HandHeld) -> FloatArray:
        """Find where events look along a motion; return how many look at each cell of the table (rows, columns)."""
        warp.locate(warp.poses(found.rotations, found.positions), as_single(found.inverse.reshape(-1)))
        counts = np.bincount(warp.cells, minlength=found.inverse.size).astype(np.float64)
        return counts.reshape(found.inverse.shape)

    def image(self, events: Events, found: HandHeld, size: tuple[int, int]) -> SingleArray:
        """Return the map (height, width) of events, along a motion and with the distances of its scene."""
        projection = Equirectangular(*size)
        if not len(events):
            return np.zeros((projection.height, projection.width), np.float32)
        warp = self.warp(events, found.rotations.start_ns, found.rotations.end_ns)
        self.seen(warp, found)
        points, weights = np.empty((len(warp), 2), np.float32), np.empty(len(warp), np.float32)
        poses = warp.poses(found.rotations, found.positions)
        warp.points(poses, as_single(found.inverse.reshape(-1)), projection, None, points, weights)
        points[:, 1] = np.where(points[:, 1] >= projection.width - 0.5, 0, points[:, 1])
        return np.asarray(Binning((projection.height, projection.width))(points), np.float32)


def cells_of(rays: FloatArray) -> IntArray:
    """Return the cells (N,) of the table that directions (N, 3) point to."""
    x, y = TABLE.project(rays).T
    rows = np.clip(np.rint(y), 0, TABLE.height - 1).astype(np.int64)
    return rows * TABLE.width + np.rint(x).astype(np.int64) % TABLE.width
