"""The frontend: one velocity per packet of events."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cmaxslam_fbp.config import EventsConfig, FrontendConfig
from cmaxslam_fbp.contrast.scores import Variance
from cmaxslam_fbp.contrast.solution import Solution, Status
from cmaxslam_fbp.contrast.solvers import solver_named
from cmaxslam_fbp.errors import ConfigError
from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.filters import remove_hot_pixels, subsample
from cmaxslam_fbp.events.packets import Packet, packets_at_rate, packets_by_count
from cmaxslam_fbp.frontend.covariance import velocity_covariance
from cmaxslam_fbp.frontend.estimate import EstimateStatus, VelocityEstimate
from cmaxslam_fbp.frontend.objectives import make_grid, make_objective, with_gradient
from cmaxslam_fbp.frontend.packet_points import PacketPoints
from cmaxslam_fbp.frontend.prediction import Prediction
from cmaxslam_fbp.frontend.pyramid import Pyramid
from cmaxslam_fbp.frontend.search import search
from cmaxslam_fbp.frontend.warps import CAMERA_SIGN
from cmaxslam_fbp.geometry.camera import Camera

FloatArray = npt.NDArray[np.float64]

_NS_PER_S = 1_000_000_000
_STILL_INTERVALS = 10  # CMax-SLAM: a packet at a fixed rate that lasts longer than this has zero velocity
_MIN_MOTION_BINS = 0.05  # the largest plausible speed must move events by at least this
_JUMP_BINS = 3.0  # a result this far from the prediction is checked
_SHARPNESS_DROP = 0.7  # one whose image is this much less sharp than those before is checked
_SHARPNESS_MEMORY = 0.7

_STATUSES = {
    Status.CONVERGED: EstimateStatus.CONVERGED,
    Status.ITERATION_LIMIT: EstimateStatus.ITERATION_LIMIT,
    Status.STALLED: EstimateStatus.STALLED,
    Status.DEGENERATE: EstimateStatus.DEGENERATE,
}


class VelocityEstimator:
    """Estimates the camera's velocity from packets of events, one after the other.

    Each packet starts from the velocities before it, carried on. Where there are none, or the result looks wrong (not
    converged, far from the prediction, an image less sharp than before), a search on coarser grids
    looks for a better one.

    Parameters
    ----------
    camera : Camera
        With its calibration.
    config : FrontendConfig, optional
        All settings; the defaults are the paper's, with our optimiser.
    events : EventsConfig, optional
        Filters before the packets are made (`packets`), and the use of polarity.

    Examples
    --------
    >>> estimator = VelocityEstimator(camera)                                # doctest: +SKIP
    >>> for estimate in estimator.run(recording.chunks()):                   # doctest: +SKIP
    ...     print(estimate.t_ns, estimate.velocity, estimate.status.value)
    """

    def __init__(
        self, camera: Camera, config: FrontendConfig | None = None, events: EventsConfig | None = None
    ) -> None:
        self.camera = camera
        self.config = config = config or FrontendConfig()
        self.events = events or EventsConfig()
        if self.events.polarity == "signed" and config.score == "negative_binomial":
            raise ConfigError(
                "the score negative_binomial is for counts: use events.polarity=ignored, or the score variance"
            )
        self._grid = make_grid(camera, config)
        self._points = PacketPoints(camera, self.events.polarity)
        self._objective = make_objective(self._grid.shape, config)
        self._ascended = with_gradient(self._objective, config)
        self._solver = solver_named(config.solver)
        self._pyramid = Pyramid(config.model, self._grid, self._points)
        self.reset()

    def reset(self) -> None:
        """Forget all packets so far: the next one is a cold start."""
        self._prediction = Prediction()
        self._hessian: FloatArray | None = None
        self._hessian_unit = 1.0
        self._sharpness: float | None = None

    def packets(self, chunks: Iterable[Events]) -> Iterator[Packet]:
        """Filter a stream of events and cut it into packets, as configured."""
        if self.events.hot_pixel_factor is not None:
            size = SensorSize(self.camera.width, self.camera.height)
            chunks = remove_hot_pixels(chunks, size, self.events.hot_pixel_factor)
        if self.events.subsample > 1:
            chunks = subsample(chunks, self.events.subsample)
        if self.config.packets == "rate":
            interval_ns = round(self.config.interval_s * _NS_PER_S)
            return packets_at_rate(chunks, self.config.events_per_packet, interval_ns)
        return packets_by_count(chunks, self.config.events_per_packet)

    def run(self, chunks: Iterable[Events]) -> Iterator[VelocityEstimate]:
        """Yield one estimate per packet of a stream of events."""
        for packet in self.packets(chunks):
            yield self.estimate(packet)

    def estimate(self, packet: Packet) -> VelocityEstimate:
        """Return the velocity of one packet, which follows those before it."""
        began = time.perf_counter()
        rule = self._rule(packet)
        if rule is not None:
            return self._without_motion(packet, rule, began)
        self._points.load(packet)
        unit = self._points.unit(self._grid)
        if unit * _MIN_MOTION_BINS > self.config.max_speed:
            return self._without_motion(packet, EstimateStatus.DEGENERATE, began)
        self._objective.use(self._points.warp(self.config.model, self._grid), self._points.weights)

        predicted = self._prediction.at(packet.t_ns)
        counts = [0, 0]
        if predicted is None and self.config.recovery:
            solution, status = self._search(None, [np.zeros(3)], unit, counts)
        else:
            start = np.zeros(3) if predicted is None else predicted
            model = None if self._hessian is None else self._hessian * (self._hessian_unit / unit) ** 2
            solution, status = self._maximise(start, unit, model, counts)
            if self.config.recovery and self._looks_stuck(solution, start, unit):
                last = self._prediction.last
                starts = [start, np.zeros(3)] if last is None else [start, np.zeros(3), last]
                solution, status = self._search(solution, starts, unit, counts)
        return self._conclude(packet, solution, status, unit, counts, began)

    def _rule(self, packet: Packet) -> EstimateStatus | None:
        """Return the status of a packet that needs no optimisation."""
        count = len(packet.events)
        if count < self.config.min_events:
            return EstimateStatus.TOO_FEW_EVENTS
        duration_s = int(packet.events.t_ns[-1] - packet.events.t_ns[0]) / _NS_PER_S
        if duration_s == 0:
            return EstimateStatus.DEGENERATE
        if count < self.config.still_rate_ev_s * duration_s:
            return EstimateStatus.STILL
        if self.config.packets == "rate" and duration_s > _STILL_INTERVALS * self.config.interval_s:
            return EstimateStatus.STILL
        return None

    def _maximise(
        self, start: FloatArray, unit: float, model: FloatArray | None, counts: list[int]
    ) -> tuple[Solution, EstimateStatus]:
        solution = self._solver.maximise(self._ascended, start, unit=unit, hessian=model)
        counts[0] += solution.evaluations
        counts[1] += solution.hessians
        return solution, _STATUSES[solution.status]

    def _looks_stuck(self, solution: Solution, start: FloatArray, unit: float) -> bool:
        """Return whether a result should be checked against others."""
        if solution.status is not Status.CONVERGED:
            return True
        if np.linalg.norm(solution.value - start) > _JUMP_BINS * unit:
            return True
        return self._sharpness is not None and self._dispersion() < _SHARPNESS_DROP * self._sharpness

    def _search(
        self, solution: Solution | None, starts: list[FloatArray], unit: float, counts: list[int]
    ) -> tuple[Solution, EstimateStatus]:
        """Return the best of a solution, if there is one, and those that a search on coarser grids leads to."""
        found = search(self._pyramid, starts, self.config.max_speed)
        counts[0] += found.evaluations
        counts[1] += found.hessians
        best, status = solution, EstimateStatus.STALLED if solution is None else _STATUSES[solution.status]
        for candidate in found.candidates:
            other, other_status = self._maximise(candidate, unit, None, counts)
            if best is None or other.score > best.score:
                best = other
                status = EstimateStatus.RECOVERED if other.status is Status.CONVERGED else other_status
        assert best is not None
        return best, status

    def _dispersion(self) -> float:
        """Variance over mean of the last image: how sharp it is, whatever the number of events."""
        image = self._objective.image
        return Variance().value(image) / max(float(np.abs(image).mean()), 1e-12)

    def _conclude(
        self,
        packet: Packet,
        solution: Solution,
        status: EstimateStatus,
        unit: float,
        counts: list[int],
        began: float,
    ) -> VelocityEstimate:
        """Judge a solution, remember it for the next packet, and return it as an estimate."""
        scatter = self._objective.gradient_scatter(solution.evaluated)
        sharpness = self._dispersion()
        hessian = solution.hessian
        if hessian is None:
            hessian = self._objective.hessian(solution.evaluated)
        largest = self.config.max_speed
        covariance = velocity_covariance(hessian, scatter, largest)
        self._objective.value(np.zeros(3))
        quality = sharpness / max(self._dispersion(), 1e-12)
        speed = float(np.linalg.norm(solution.value))
        if not np.isfinite(speed) or speed > largest or np.linalg.eigvalsh(covariance)[-1] >= 0.999 * largest**2:
            status = EstimateStatus.DEGENERATE
        if status is EstimateStatus.DEGENERATE:
            return self._without_motion(packet, status, began, counts)
        velocity = CAMERA_SIGN * solution.value
        if status in (EstimateStatus.CONVERGED, EstimateStatus.RECOVERED):
            self._hessian, self._hessian_unit = solution.hessian, unit
        else:
            self._hessian = None
        if status is EstimateStatus.CONVERGED:
            self._prediction.add(packet.t_ns, solution.value)
        else:
            self._prediction.restart(packet.t_ns, solution.value)
        memory = self._sharpness
        self._sharpness = sharpness if memory is None else memory + (1 - _SHARPNESS_MEMORY) * (sharpness - memory)
        return VelocityEstimate(
            t_ns=packet.t_ns,
            velocity=velocity,
            covariance=covariance,
            score=solution.score,
            quality=quality,
            evaluations=counts[0],
            hessians=counts[1],
            status=status,
            events=len(packet.events),
            seconds=time.perf_counter() - began,
        )

    def _without_motion(
        self, packet: Packet, status: EstimateStatus, began: float, counts: list[int] | None = None
    ) -> VelocityEstimate:
        """Return zero velocity, known to a bin per packet for a still camera and not at all otherwise."""
        deviation = self.config.max_speed
        if status is EstimateStatus.STILL:
            reach_s = max(abs(int(packet.events.t_ns[k]) - packet.t_ns) for k in (0, -1)) / _NS_PER_S
            deviation = min(deviation, 1 / (max(self._grid.scale_x, self._grid.scale_y) * reach_s))
            self._prediction.restart(packet.t_ns, np.zeros(3))
        else:
            self._prediction = Prediction()
        self._hessian = self._sharpness = None
        return VelocityEstimate(
            t_ns=packet.t_ns,
            velocity=np.zeros(3),
            covariance=deviation**2 * np.eye(3),
            score=0.0,
            quality=1.0,
            evaluations=counts[0] if counts else 0,
            hessians=counts[1] if counts else 0,
            status=status,
            events=len(packet.events),
            seconds=time.perf_counter() - began,
        )
