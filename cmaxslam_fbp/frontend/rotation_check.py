"""How much of the image's motion a rotation explains: residual flows of parts of a packet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmaxslam_fbp.arrays import FloatArray
from cmaxslam_fbp.contrast.objective import ContrastObjective
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.contrast.solvers.newton import LATTICE_BINS, Newton
from cmaxslam_fbp.events.packets import Packet
from cmaxslam_fbp.frontend.covariance import velocity_covariance
from cmaxslam_fbp.frontend.estimate import VelocityEstimate
from cmaxslam_fbp.frontend.evidence import deviations_along
from cmaxslam_fbp.frontend.motion_models import ONE, ZERO, MotionModel, Vector
from cmaxslam_fbp.frontend.packet_events import PacketEvents, PacketLookup
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN, Grid, VelocityWarp
from cmaxslam_fbp.geometry.camera import Camera

_TILES = (4, 3)  # columns and rows of parts over the field of view
_FEWEST_EVENTS = 300  # of a part
_FEWEST_PARTS = 4  # of a packet: a rotation alone explains three numbers
_MIN_MOTION_BINS = 0.3  # of the packet's first or last event: less tells nothing
_ACROSS_BINS = 150  # bins across the field of view
_ERROR_BINS = 0.05  # of the motion of a part, besides its noise
_MIN_EVIDENCE = 18.0  # standard deviations by which the events of a part must agree more than by chance
_LARGEST_BINS = 6.0  # residual motion that is looked for
_SOLVER = Newton(tolerance_bins=0.05, max_evaluations=15, lattice_bins=LATTICE_BINS)


class Shift(MotionModel):
    """`q = p + dt (u, v, 0)`: all points move alike."""

    parameters = ("u_1_s", "v_1_s")

    @staticmethod
    def transform(p: Vector, dt: Any, w: Any) -> Vector:
        """`p + dt (u, v, 0)`."""
        return p[0] + dt * w[0], p[1] + dt * w[1], p[2]

    @staticmethod
    def derivative(p: Vector, dt: Any, w: Any, q: Vector, b: int) -> Vector:
        """`dt e_b`."""
        return dt * (ONE if b == 0 else ZERO), dt * (ONE if b == 1 else ZERO), ZERO


@dataclass(frozen=True)
class RotationResidual:
    """What a rotation leaves of the motion in a packet.

    Both are sums over the packet's parts in units of the uncertainty, `f^T C^-1 f`, so that parts count by how well
    their flow is known, along edges as across them.

    Attributes
    ----------
    t_ns : int
        The packet's time.
    unexplained : float
        Of the flows that the best rotation leaves, less what noise alone would leave.
    motion : float
        Of the whole flows.
    """

    t_ns: int
    unexplained: float
    motion: float


@dataclass(frozen=True)
class Drowned:
    """A packet with enough events in enough parts, that agree more than by chance in too few of them."""

    t_ns: int


class RotationCheck:
    """Measures the flows of parts of a packet that the packet's angular velocity leaves.

    Parameters
    ----------
    camera : with its calibration
    """

    def __init__(self, camera: Camera) -> None:
        self._look_up = PacketLookup(camera)
        plane = camera.undistorted_pixels().reshape(-1, 2)
        self._corner, self._size = plane.min(axis=0), np.ptp(plane, axis=0)
        step = float(self._size.max()) / _ACROSS_BINS
        columns, rows = (np.ceil(1.5 * self._size / step)).astype(int).tolist()
        self._grid = Grid.normalised(camera, (rows, columns), step)
        self._objective = ContrastObjective(self._grid.shape, Variance())

    def look(self, packet: Packet, estimate: VelocityEstimate) -> RotationResidual | Drowned | None:
        """Return the residual of a packet whose velocity was measured; None where it has too little to tell."""
        if not estimate.status.is_measured or len(packet.events) < _FEWEST_PARTS * _FEWEST_EVENTS:
            return None
        events = self._look_up(packet)
        unit = self._grid.speed_of_one_bin(events.reach_s)
        omega = CAMERA_SIGN * estimate.velocity
        if np.linalg.norm(omega) < _MIN_MOTION_BINS * unit:
            return None
        x, y = (values.astype(np.float64) for values in (events.x, events.y))
        dt = events.dt_s.astype(np.float64)
        q = np.stack([x, y, np.ones_like(x)]) + dt * np.cross(omega, np.stack([x, y, np.ones_like(x)], axis=-1)).T
        x, y = q[0] / q[2], q[1] / q[2]
        column, row = (
            np.clip((count * (values - low) / size).astype(np.intp), 0, count - 1)
            for count, values, low, size in zip(_TILES, (x, y), self._corner, self._size, strict=True)
        )
        part = row * _TILES[0] + column
        information, flows, jacobians = [], [], []
        parts = 0
        for number in range(_TILES[0] * _TILES[1]):
            chosen = part == number
            if np.count_nonzero(chosen) < _FEWEST_EVENTS:
                continue
            parts += 1
            found = self._flow(PacketEvents(*(v[chosen].astype(np.float32) for v in (x, y, dt))), unit)
            if found is None:
                continue
            middle = np.array([x[chosen].mean(), y[chosen].mean()])
            information.append(found[1])
            flows.append(found[0])
            jacobians.append(_rotation_flow(*middle))
        if parts >= _FEWEST_PARTS > len(flows):
            return Drowned(packet.t_ns)
        return _residual(packet.t_ns, omega, np.array(flows), np.array(information), np.array(jacobians))

    def _flow(self, events: PacketEvents, unit: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the flow (2,) of events that were warped already, and its information (2, 2); None of noise."""
        self._objective.use(VelocityWarp(Shift(), self._grid, events))
        solution = _SOLVER.maximise(self._objective, np.zeros(2), unit=unit)
        largest = _LARGEST_BINS * unit
        if not np.linalg.norm(solution.parameters) < largest:
            return None
        at = solution.evaluated
        covariance = velocity_covariance(self._objective.hessian(at), self._objective.gradient_scatter(at), largest)
        variances, axes = np.linalg.eigh(covariance)
        variances += (_ERROR_BINS * unit) ** 2
        # Noise has a flow of its own, by chance, and so has what lies along straight edges.
        told = [deviations_along(self._objective, unit, at, axis) >= _MIN_EVIDENCE for axis in axes.T]
        variances[~np.array(told)] = largest**2
        return (solution.parameters, (axes / variances) @ axes.T) if any(told) else None


def _rotation_flow(x: float, y: float) -> FloatArray:
    """Return the flow (2, 3) of a point of the normalised plane by the angular velocity of the warp."""
    return np.array([[-x * y, 1 + x * x, -y], [-1 - y * y, x * y, x]])


def _residual(
    t_ns: int, omega: FloatArray, flows: FloatArray, information: FloatArray, jacobians: FloatArray
) -> RotationResidual | None:
    """Return the residual of flows (K, 2) beside those of `omega` after the best further turn."""
    if len(flows) < _FEWEST_PARTS:
        return None
    normal = np.einsum("kji,kjl,klm->im", jacobians, information, jacobians)
    right = np.einsum("kji,kjl,kl->i", jacobians, information, flows)
    turn = np.linalg.lstsq(normal, right, rcond=1e-9)[0]
    left = flows - jacobians @ turn
    whole = flows + jacobians @ omega
    squares = [float(np.einsum("ki,kij,kj->", f, information, f)) for f in (left, whole)]
    return RotationResidual(t_ns, squares[0] - (2 * len(flows) - 3), squares[1])
